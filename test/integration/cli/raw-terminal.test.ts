import { expect, test } from "bun:test";
import { join } from "node:path";
import { TmuxWindow } from "../../support/tmux.ts";

const SCRIPT = join(import.meta.dir, "../../support/raw-terminal-user.ts");
const MODES = "stty -a | tr ' ' '\\n' | grep -E '^-?(icanon|echo|isig|icrnl|opost);?$' | xargs";

/** Runs the script where nothing else mends the terminal, as an interactive shell would. */
async function terminalAfter(ending: string): Promise<{ modes: string; pasted: string }> {
  const env = { PATH: process.env["PATH"] ?? "", BUN: process.execPath, SCRIPT };
  await using window = await TmuxWindow.open({ env, cwd: "/" });
  const script = `$BUN $SCRIPT ${ending}; clear; ${MODES}; cat -v`;
  await window.enter(`sh -c "${script.replaceAll(/["\\$]/g, "\\$&")}"`);
  await window.waitFor("ready");
  await window.type("x");
  const modes = await window.waitFor(/icanon.*$/);
  await window.paste("pasted");
  return { modes, pasted: (await window.waitFor("pasted")).slice(modes.length + 1) };
}

test.each(["throw", "reject", "exit", "dispose"])(
  "the terminal has its own mode again after %s, and pastes without brackets",
  async (ending) => {
    expect(await terminalAfter(ending)).toEqual({
      modes: "icrnl opost isig icanon echo",
      pasted: "pasted",
    });
  },
);

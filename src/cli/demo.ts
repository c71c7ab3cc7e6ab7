/** `prime-agent demo`: a prepared conversation, a real kernel, a project in a temporary folder. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentEvent } from "../agent/events.ts";
import { createApp } from "../app.ts";
import { bindScript } from "../app-model.ts";
import type { CommandContext } from "./context.ts";
import script from "./demo-script.json";
import { wantsColor } from "./output.ts";
import { ProgressLines } from "./progress.ts";
import { readConfig } from "./read-config.ts";
import { EXIT_CODES } from "./report-error.ts";

const INTRODUCTION = `This is a demo: the model is a script, everything else is real. The cells run in an
IPython kernel of their own, in a temporary project.
`;
const ENDING = `
That was the demo: a scripted model, a real kernel. With a provider's key in the environment
(ANTHROPIC_API_KEY, OPENAI_API_KEY, …) the same loop works on your own project:
  prime-agent "explain what this project does"
`;

/** Runs the demo; the exit code is that of its run. */
export async function runDemo({ args, terminal, interruption }: CommandContext): Promise<number> {
  interruption.listen();
  const { stdout } = terminal;
  stdout.write(INTRODUCTION);
  const folder = mkdtempSync(join(tmpdir(), "prime-agent-demo-"));
  try {
    for (const [name, text] of Object.entries(script.files))
      writeFileSync(join(folder, name), text);
    const config = readConfig(args.options);
    const color = wantsColor(stdout, config.output.color, config.environment.variables);
    const progress = new ProgressLines({
      write: (text) => stdout.write(text),
      color,
      redact: (text) => text,
    });
    const app = await createApp(
      {
        ...config,
        cwd: folder,
        session: { ...config.session, save: false },
        prompt: { ...config.prompt, contextFiles: false },
      },
      {
        emit: (event) => showEvent(event, progress),
        chooseWhenBusy: async () => "cancel",
        bind: () => bindScript(script.replies),
      },
    );
    try {
      progress.line(`\nuser: ${script.prompt}`);
      const outcome = await app.agent.run(script.prompt, interruption.signal);
      if (outcome.error) terminal.stderr.write(`prime-agent: ${outcome.error.message}\n`);
      else stdout.write(ENDING);
      return EXIT_CODES[outcome.subtype];
    } finally {
      await app.dispose();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The replies as a conversation, cells and their output as on stderr of a headless run. */
function showEvent(event: AgentEvent, progress: ProgressLines): void {
  if (event.type === "assistant") {
    for (const block of event.message.content) {
      if (block.type === "text") progress.line(`\nmodel (scripted): ${block.text}`);
    }
  } else if (event.type === "tool_start") {
    progress.line(event.code.replace(/^/gm, "> "));
  } else {
    progress.onEvent(event);
  }
}

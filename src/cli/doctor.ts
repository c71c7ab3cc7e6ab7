/** `prime-agent doctor`: the findings as text or JSON; exit code 0 only if a run would work. */

import { examine, type Finding } from "../app-doctor.ts";
import pc from "picocolors";
import type { CommandContext } from "./context.ts";
import { wantsColor } from "./output.ts";
import { readConfig } from "./read-config.ts";

/** Runs the command. */
export async function runDoctor({
  args,
  terminal,
  interruption,
  version,
}: CommandContext): Promise<number> {
  interruption.listen();
  const config = readConfig(args.options);
  const findings = await examine(config, (line) => terminal.stderr.write(`${line}\n`));
  const works = findings.every(({ state }) => state !== "failed");
  if (args.options.has("json")) {
    terminal.stdout.write(`${JSON.stringify({ version, ok: works, findings }, null, 2)}\n`);
  } else {
    const colors = pc.createColors(
      wantsColor(terminal.stdout, config.output.color, config.environment.variables),
    );
    for (const finding of findings) terminal.stdout.write(render(finding, colors));
    terminal.stdout.write(works ? "A run would work.\n" : "A run would not work yet.\n");
  }
  return works ? 0 : 1;
}

function render(
  { name, state, detail, hint }: Finding,
  colors: ReturnType<typeof pc.createColors>,
): string {
  const mark = {
    ok: colors.green("ok"),
    warning: colors.yellow("warning"),
    failed: colors.red("failed"),
  }[state];
  return `${name.padEnd(17)} ${mark}  ${detail}\n${hint ? `${" ".repeat(18)}${hint}\n` : ""}`;
}

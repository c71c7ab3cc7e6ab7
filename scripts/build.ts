/** Builds dist/prime-agent, or dist/prime-agent-TARGET for a target that is named. */

import { join } from "node:path";
import { buildExecutable, run } from "./lib/executable.ts";
import { hostTarget, targetNamed } from "./lib/targets.ts";
import { REPOSITORY } from "./lib/wheel-lock.ts";

const named = process.argv[2];
const target = targetNamed(named ?? hostTarget());
const outfile = join(REPOSITORY, "dist", named ? `prime-agent-${named}` : "prime-agent");

await run(REPOSITORY, [join(REPOSITORY, "scripts/fetch-wheels"), target.platform]);
await buildExecutable({
  target,
  outfile,
  entry: join(REPOSITORY, "src/main.ts"),
  native: named === undefined,
});
if (named === undefined) console.log((await run("/", [outfile, "--version"])).trim());
const megabytes = (Bun.file(outfile).size / 1e6).toFixed(1);
console.error(`build: ${outfile.slice(REPOSITORY.length + 1)}, ${megabytes} MB`);

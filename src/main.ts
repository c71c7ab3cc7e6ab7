/** The program's entry: argv in, exit code out. Loads only what the command needs. */

import { version } from "../package.json";

const argv = process.argv.slice(2);
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  console.log(`prime-agent ${version}`);
} else {
  if (process.pid === 1)
    void import("./kernel/orphans.ts").then(({ collectOrphans }) => collectOrphans());
  // Not a top-level await: the executable's bytecode has the CommonJS form.
  void import("./cli/commands.ts")
    .then(({ runCommand }) => runCommand(argv, version))
    .then((code) => process.exit(code));
}

/** What the command line gives to each command. */

import type { Arguments } from "./arguments.ts";
import type { Terminal } from "./output.ts";
import type { Interruption } from "./signals.ts";

/** What every command is given. */
export interface CommandContext {
  args: Arguments;
  terminal: Terminal;
  interruption: Interruption;
  version: string;
}

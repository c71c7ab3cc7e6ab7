/**
 * Appends numbered messages to a session for ever, printing each number once it is saved. For
 * tests that kill it: `bun session-writer.ts HOME ID`.
 */

import { writeSync } from "node:fs";
import { Session } from "../../src/agent/session.ts";

const [home, id] = process.argv.slice(2) as [string, string];
const session = Session.create({ home, cwd: "/", id });
for (let number = 0; ; number += 1) {
  session.appendMessage({ role: "user", content: `${number} ${"é".repeat(2000)}`, timestamp: 0 });
  writeSync(1, `${number}\n`);
}

/** Takes the terminal in raw mode and, at a key, ends in the way that its argument names. */

import { RawTerminal } from "../../src/cli/raw-terminal.ts";

const endings: Record<string, () => void> = {
  throw: () => {
    throw new Error("thrown on purpose");
  },
  reject: () => void Promise.reject(new Error("rejected on purpose")),
  exit: () => process.exit(3),
  dispose: () => terminal[Symbol.dispose](),
};

const terminal = new RawTerminal({
  onKeys: () => endings[process.argv[2] as string]?.(),
  onResize: () => undefined,
  onStop: () => undefined,
  onContinue: () => undefined,
  onHangup: () => undefined,
});
process.stdout.write("ready\r\n");

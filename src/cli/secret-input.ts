/** One line from the terminal, without an echo. */

import { AbortedError } from "../errors.ts";
import type { OutputStream } from "./output.ts";

/** Asks for a secret. Ctrl-C rejects with AbortedError, Ctrl-D ends the input. */
export function readSecret(prompt: string, output: OutputStream): Promise<string> {
  const { stdin } = process;
  output.write(prompt);
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  return new Promise((resolve, reject) => {
    let typed = "";
    const finish = (settle: () => void) => {
      stdin.setRawMode(false);
      stdin.pause();
      stdin.removeListener("data", onData);
      output.write("\n");
      settle();
    };
    const onData = (chunk: string) => {
      for (const character of chunk) {
        if (character === "\u0003") return finish(() => reject(new AbortedError("user")));
        if (character === "\r" || character === "\n" || character === "\u0004") {
          return finish(() => resolve(typed));
        }
        typed = character === "\u007f" ? typed.slice(0, -1) : typed + character;
      }
    };
    stdin.on("data", onData);
    stdin.resume();
  });
}

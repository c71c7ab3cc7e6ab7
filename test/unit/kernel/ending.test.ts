/** Ending a kernel's process: as gently as it allows, and always in bounded time. */

import { describe, expect, test } from "bun:test";
import { endProcess } from "../../../src/kernel/ending.ts";
import { ScriptedProcess } from "../../support/scripted-kernel.ts";

const TIMES = { answer: 40, exit: 40, term: 40 };
const never = new Promise<never>(() => undefined);

/** What the process does when it is asked and when it is told, and which signals that takes. */
const ENDINGS: Array<{
  name: string;
  ask(process: ScriptedProcess): Promise<unknown>;
  onSignal?(process: ScriptedProcess, signal: string): void;
  signals: string[];
}> = [
  {
    name: "answers and exits",
    ask: async (process) => process.exit({ code: 0, signal: null }),
    signals: [],
  },
  {
    name: "exits without an answer",
    ask: (process) => {
      process.exit({ code: 0, signal: null });
      return never;
    },
    signals: [],
  },
  {
    name: "answers but stays, and heeds SIGTERM",
    ask: async () => undefined,
    onSignal: (process, signal) => signal === "SIGTERM" && process.exit({ code: 143, signal }),
    signals: ["SIGTERM group"],
  },
  {
    name: "neither answers nor heeds SIGTERM",
    ask: () => never,
    onSignal: (process, signal) => signal === "SIGKILL" && process.exit({ code: null, signal }),
    signals: ["SIGTERM group", "SIGKILL group"],
  },
  {
    name: "can't be asked",
    ask: () => Promise.reject(new Error("the channel is closed")),
    onSignal: (process, signal) => process.exit({ code: null, signal }),
    signals: ["SIGTERM group"],
  },
  {
    name: "is stuck in the system, which SIGKILL does not end",
    ask: () => never,
    signals: ["SIGTERM group", "SIGKILL group"],
  },
];

describe("a process that", () => {
  test.each(ENDINGS)("$name", async ({ ask, onSignal, signals }) => {
    const process = new ScriptedProcess(onSignal ?? (() => undefined));
    await endProcess(process, () => ask(process), TIMES);
    expect(process.signals).toEqual(signals);
  });
});

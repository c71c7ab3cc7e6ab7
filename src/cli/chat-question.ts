/** Stage 3 of a tool call with a person at hand: an earlier cell does not end; what shall be done? */

import type { AppHooks } from "../app.ts";

type AskWhenBusy = AppHooks["chooseWhenBusy"];
type BusyChoice = Awaited<ReturnType<AskWhenBusy>>;

const CHOICES: readonly BusyChoice[] = ["wait", "restart", "cancel"];

/** What asking needs. */
export interface BusyQuestion {
  say(text: string): void;
  /** Undefined when nobody answers any more. */
  ask(label: string): Promise<string | undefined>;
  /** The answer that was given beforehand. */
  always: BusyChoice | undefined;
}

/** Asks a person; agents that ask at the same time wait for each other. No answer cancels the call. */
export function askWhenBusy({ say, ask, always }: BusyQuestion): AskWhenBusy {
  let asking: Promise<unknown> = Promise.resolve();
  const askOnce = async (): Promise<BusyChoice> => {
    say("An earlier cell still runs, although it was interrupted; the next one waits:");
    say("  wait     give it more time; all variables stay");
    say("  restart  end the kernel; what the last snapshot holds comes back");
    say("  cancel   don't run the next cell; the model is told");
    for (;;) {
      const answer = await ask("wait, restart or cancel? ");
      if (answer === undefined) return "cancel";
      const word = answer.trim().toLowerCase();
      const choice = word !== "" && CHOICES.find((candidate) => candidate.startsWith(word));
      if (choice) return choice;
    }
  };
  return async () => {
    if (always !== undefined) return always;
    const answer = asking.then(askOnce);
    asking = answer.catch(() => undefined);
    return await answer;
  };
}

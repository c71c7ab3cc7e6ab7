/** A summary by the model that the agent uses anyway, for compaction. */

import { SummaryOverflowError } from "./agent/errors.ts";
import type { Agent } from "./agent/loop.ts";
import { requestReply } from "./agent/reply.ts";
import { throwIfAborted } from "./async.ts";
import { PrimeAgentError } from "./errors.ts";
import { messageText, type Message } from "./message.ts";

/** Asks for a summary of `messages`. @throws SummaryOverflowError, AbortedError, PrimeAgentError. */
export async function compactionSummary(
  agent: Agent,
  input: { messages: readonly Message[]; instructions: string; signal: AbortSignal },
): Promise<string> {
  const { model, provider, apiKey, request } = agent.binding;
  const reply = await requestReply(
    provider,
    {
      ...request,
      model,
      apiKey,
      systemPrompt: input.instructions,
      messages: input.messages,
      tools: [],
      signal: input.signal,
    },
    () => undefined,
  );
  agent.state.addUsage(
    `${model.provider}/${model.id}`,
    reply.message.usage,
    model.cost !== undefined,
  );
  if (!reply.failure) return messageText(reply.message);
  if (reply.failure.kind === "overflow") throw new SummaryOverflowError(reply.failure.message);
  throwIfAborted(input.signal);
  throw new PrimeAgentError("summary_failed", `the summary failed: ${reply.failure.message}`);
}

/**
 * The agent loop. `run` takes a prompt and goes round: request → reply → tool
 * calls → request, until the model answers without a call and nothing else is
 * pending. Every message is in the session before the next step depends on it.
 */

import { abortReason, raceWithAbort } from "../async.ts";
import { AbortedError, PrimeAgentError } from "../errors.ts";
import {
  messageText,
  type ImageBlock,
  type Message,
  type StopReason,
  type TextBlock,
  type ToolCallBlock,
} from "../message.ts";
import type { Effort, Model, Provider, ProviderRequest } from "../providers/provider.ts";
import { IPYTHON_TOOL, type IpythonTool } from "../tool/ipython.ts";
import type { EventSink, RunOutcome } from "./events.ts";
import { Inbox } from "./inbox.ts";
import {
  abortedOutcome,
  brokenOutcome,
  checkFailed,
  kernelFailed,
  requestFailed,
} from "./outcomes.ts";
import { RefusedImages } from "./refused-images.ts";
import { requestReply, type Reply } from "./reply.ts";
import { RunState, type RunLimits } from "./run-state.ts";
import type { Session } from "./session.ts";
import { runCall } from "./tool-calls.ts";
import { UnfinishedAnswer } from "./unfinished.ts";

/** Which model answers, and how it is reached. */
export interface ModelBinding {
  model: Model;
  provider: Provider;
  apiKey: string | undefined;
  effort?: Effort;
  /** Options of every request: retries, proxy, TLS, redaction. */
  request: Pick<ProviderRequest, "maxRetries" | "proxy" | "tls" | "redact" | "idleTimeoutMs">;
}

/** Keeps the context within the model's window; see compaction.ts. */
export interface ContextKeeper {
  /** Called before each request; may replace part of the context by a summary. */
  beforeRequest(signal: AbortSignal): Promise<void>;
  /** Called when the provider says that the request was too long; true when the request is worth another try. */
  onOverflow(signal: AbortSignal): Promise<boolean>;
}

/** Work beside the loop that a run waits for before it ends, such as sub-agents. */
export interface SideWork {
  /** Resolves when none is left; undefined when there is none now. */
  settled(): Promise<void> | undefined;
}

/** What an agent is made of. */
export interface AgentParts {
  session: Session;
  binding: ModelBinding;
  tool: IpythonTool;
  systemPrompt: string;
  limits: RunLimits;
  emit: EventSink;
  /** Starts the kernel in the background while the model thinks. */
  prewarm(): void;
  /** Waits for the news in the inbox of what a resumed session's kernel holds; never throws. */
  revival?(signal: AbortSignal): Promise<void>;
  context?: ContextKeeper;
  sideWork?: SideWork;
  /** Tests that must pass before success; the text of a failure goes back to the model. */
  runChecks?(signal: AbortSignal): Promise<string | undefined>;
  /** The next prompt that the agent gives itself, such as a goal's continuation. */
  nextPrompt?(): string | undefined;
}

/** How often a failed check goes back to the model. */
const MAX_CHECK_ROUNDS = 5;

/** See the head of this file. */
export class Agent {
  readonly inbox = new Inbox();
  /** The model can be changed between prompts. */
  binding: ModelBinding;
  /** Counters over the agent's whole life. */
  readonly state = new RunState();
  /** The id of the last assistant message's entry, to which sub-agents' usage is charged. */
  lastReplyEntry: string | undefined;
  /** The call that runs now. */
  currentCall: ToolCallBlock | undefined;
  readonly #parts: AgentParts;
  readonly #refusedImages = new RefusedImages();
  #cell: AbortController | undefined;
  #idle = true;

  constructor(parts: AgentParts) {
    this.#parts = parts;
    this.binding = parts.binding;
  }

  get session(): Session {
    return this.#parts.session;
  }

  get systemPrompt(): string {
    return this.#parts.systemPrompt;
  }

  /** Whether no turn is under way: nothing runs, or the run waits for side work. */
  get idle(): boolean {
    return this.#idle;
  }

  /** Interrupts only the cell that runs now; false when none does. */
  interruptCell(): boolean {
    if (!this.#cell || this.#cell.signal.aborted) return false;
    this.#cell.abort(new AbortedError("user"));
    return true;
  }

  /**
   * Answers one prompt, or without one the messages in the inbox. Never throws: the outcome says what
   * happened.
   */
  async run(
    prompt: string | Array<TextBlock | ImageBlock> | undefined,
    signal: AbortSignal,
  ): Promise<RunOutcome> {
    if (prompt !== undefined)
      this.#parts.session.appendMessage({ role: "user", content: prompt, timestamp: Date.now() });
    this.#parts.prewarm();
    this.#idle = false;
    try {
      await this.#parts.revival?.(signal);
      return await this.#turns(signal);
    } catch (error) {
      if (error instanceof AbortedError) return abortedOutcome(error);
      const known = error instanceof PrimeAgentError;
      return brokenOutcome(known ? error : new PrimeAgentError("internal", String(error)));
    } finally {
      this.#idle = true;
    }
  }

  async #turns(signal: AbortSignal): Promise<RunOutcome> {
    let checkRounds = 0;
    const answer = new UnfinishedAnswer();
    for (;;) {
      this.#deliverInbox();
      const reply = await this.#reply(signal);
      if (reply.failure) return requestFailed(reply.failure, messageText(reply.message), signal);
      const cutOff = answer.add(reply.message);
      if (cutOff) this.inbox.push(cutOff);
      const text = answer.text;
      if (!cutOff) answer.end();
      const calls = reply.message.content.filter((block) => block.type === "toolCall");
      const fatal = await this.#runCalls(calls, signal);
      if (fatal) return fatal;
      const goesOn = calls.length > 0 || (await this.#isMoreToDo(signal));
      if (signal.aborted) throw abortReason(signal);
      if (!goesOn) {
        const complaint = await this.#parts.runChecks?.(signal);
        if (complaint === undefined) return this.#success(text, reply.message.stopReason);
        checkRounds += 1;
        if (checkRounds >= MAX_CHECK_ROUNDS) return checkFailed(text, complaint);
        this.inbox.push({ source: "check", content: complaint });
      }
      const exceeded = this.state.exceeded(this.#parts.limits, text);
      if (exceeded)
        return checkRounds > 0 ? checkFailed(text, exceeded.error?.message ?? "") : exceeded;
    }
  }

  #success(text: string, stopReason: StopReason): RunOutcome {
    if (stopReason === "length")
      this.#parts.emit({ type: "warning", message: "the answer was cut off by the output limit" });
    return { subtype: "success", text, stopReason };
  }

  /** One reply, with at most one compaction and one dropped image on the way. */
  async #reply(signal: AbortSignal): Promise<Reply> {
    await this.#parts.context?.beforeRequest(signal);
    let mayDropImage = true;
    for (;;) {
      const messages = this.#refusedImages.leaveOut(this.#parts.session.messages());
      const reply = await this.#request(messages, signal);
      if (reply.failure?.kind === "overflow" && (await this.#parts.context?.onOverflow(signal)))
        continue;
      if (
        reply.failure?.imageRelated &&
        mayDropImage &&
        this.#refusedImages.refuseLatest(messages)
      ) {
        mayDropImage = false;
        this.#parts.emit({
          type: "warning",
          message: "the provider refused an image; trying without it",
        });
        continue;
      }
      return this.#record(reply);
    }
  }

  async #request(messages: readonly Message[], signal: AbortSignal): Promise<Reply> {
    const { model, provider, apiKey, effort, request } = this.binding;
    this.#parts.emit({ type: "request", turn: this.state.turns + 1 });
    const started = performance.now();
    const reply = await requestReply(
      provider,
      {
        ...request,
        model,
        apiKey,
        ...(effort && { effort }),
        systemPrompt: this.#parts.systemPrompt,
        messages,
        tools: [IPYTHON_TOOL],
        sessionId: this.#parts.session.id,
        signal,
      },
      this.#parts.emit,
    );
    this.state.apiMs += performance.now() - started;
    return reply;
  }

  /** Puts a reply into the transcript; a failed one only when it holds something to keep. */
  #record(reply: Reply): Reply {
    const { message, failure, ttftMs, durationMs } = reply;
    this.state.ttftMs ??= ttftMs;
    const priceKnown = this.binding.model.cost !== undefined;
    if (!failure) this.state.addReply(message, priceKnown);
    // What was used before a reply failed was used all the same.
    else if (message.usage.totalTokens > 0)
      this.state.addUsage(`${message.provider}/${message.model}`, message.usage, priceKnown);
    if (!failure || message.content.length > 0) {
      this.lastReplyEntry = this.#parts.session.appendMessage(message);
      this.#parts.emit({
        type: "assistant",
        message,
        ...(ttftMs !== undefined && { ttftMs }),
        durationMs,
      });
    }
    if (failure) {
      for (const block of message.content) {
        if (block.type === "toolCall")
          this.#appendResult(block, "Not run: the reply did not end properly.");
      }
    }
    return reply;
  }

  #appendResult(call: ToolCallBlock, text: string): void {
    this.#parts.session.appendMessage({
      role: "toolResult",
      toolCallId: call.id,
      toolName: call.name,
      content: [{ type: "text", text }],
      isError: true,
      timestamp: Date.now(),
    });
  }

  /** Runs all calls of a reply, one after another; the outcome is that of a kernel that can't be had. */
  async #runCalls(
    calls: readonly ToolCallBlock[],
    signal: AbortSignal,
  ): Promise<RunOutcome | undefined> {
    let fatal: PrimeAgentError | undefined;
    for (const call of calls) {
      this.#cell = new AbortController();
      this.currentCall = call;
      const started = performance.now();
      const result = await runCall(call, {
        tool: this.#parts.tool,
        emit: this.#parts.emit,
        signal,
        callSignal: () => AbortSignal.any([signal, this.#cell?.signal ?? signal]),
      });
      this.state.toolMs += performance.now() - started;
      this.state.toolCalls += 1;
      this.#parts.session.appendMessage(result.message);
      this.#parts.emit({ type: "tool_end", message: result.message });
      fatal ??= result.fatal;
    }
    this.#cell = undefined;
    this.currentCall = undefined;
    return fatal && kernelFailed(fatal);
  }

  /** Whether another turn is due although the model asked for none; waits for side work to say so. */
  async #isMoreToDo(signal: AbortSignal): Promise<boolean> {
    for (;;) {
      if (this.inbox.size > 0) return true;
      const working = this.#parts.sideWork?.settled();
      if (!working) break;
      this.#idle = true;
      await raceWithAbort(Promise.race([working, this.inbox.arrival()]), signal);
      this.#idle = false;
    }
    const prompt = this.#parts.nextPrompt?.();
    if (prompt === undefined) return false;
    this.inbox.push({ source: "goal", content: prompt });
    return true;
  }

  #deliverInbox(): void {
    for (const { source, content, details, onDelivered } of this.inbox.take()) {
      this.#parts.session.append({
        type: "custom_message",
        customType: source,
        content,
        display: true,
        ...(details !== undefined && { details }),
      });
      const text =
        typeof content === "string"
          ? content
          : content.map((block) => ("text" in block ? block.text : "")).join("");
      this.#parts.emit({ type: "injected", source, text });
      onDelivered?.();
    }
  }
}

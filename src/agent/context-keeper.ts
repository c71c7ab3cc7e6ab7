/**
 * Keeps a session's context within its model's window: before a request when it grows near the
 * limit, after the provider refused one as too long, and on demand. Every way has an end.
 */

import { throwIfAborted } from "../async.ts";
import { errorMessage } from "../errors.ts";
import { compact, compactionError, type Summarize } from "./compaction.ts";
import { namespaceNote, type NamespaceReport } from "./compaction-text.ts";
import type { EventSink } from "./events.ts";
import type { Session } from "./session.ts";
import { contextTokens, tokenLimit, type ModelWindow } from "./tokens.ts";

/** What a context keeper works with. */
export interface ContextKeeperParts {
  session: Session;
  /** Of the model that answers now. */
  window(): ModelWindow;
  /** Tokens of the system prompt and the tool's schema. */
  fixedTokens: number;
  summarize: Summarize;
  /** Saves and prunes the kernel's namespace; `undefined` when no kernel runs. */
  pruneNamespace?(signal: AbortSignal): Promise<NamespaceReport | undefined>;
  emit: EventSink;
}

/** How full the context is. */
export interface ContextStatus {
  tokens: number;
  contextWindow: number;
  /** Of the window, from 0 to 100. */
  percent: number;
}

/** So many requests in a row may need a compaction; then it is no use. */
const MAX_CONSECUTIVE = 3;

/** After a failed attempt the context must grow by this factor before the next. */
const GROWTH_BEFORE_RETRY = 1.1;

/** See the head of this file; satisfies the loop's `ContextKeeper`. */
export class SessionContextKeeper {
  readonly #parts: ContextKeeperParts;
  #consecutive = 0;
  #overflowHandled = false;
  /** The size at which the last attempt before a request failed. */
  #failedAt = 0;
  #scheduled: { instructions?: string } | undefined;

  constructor(parts: ContextKeeperParts) {
    this.#parts = parts;
  }

  /** How full the context is now. */
  status(): ContextStatus {
    const { contextWindow } = this.#parts.window();
    const tokens = this.#tokens();
    return { tokens, contextWindow, percent: Math.round((tokens / contextWindow) * 100) };
  }

  /** Whether a compaction was asked for that has not happened yet. */
  get scheduled(): boolean {
    return this.#scheduled !== undefined;
  }

  /** Asks for a compaction before the next request; false when one is due already. */
  schedule(instructions?: string): boolean {
    if (this.#scheduled) return false;
    this.#scheduled = instructions === undefined ? {} : { instructions };
    return true;
  }

  /**
   * Compacts when it was asked for or the context is near the limit. A failure is a warning, since the request may
   * still pass, or shows better what is wrong; a context that fills again and again throws
   * {@link CompactionError}.
   */
  async beforeRequest(signal: AbortSignal): Promise<void> {
    this.#overflowHandled = false;
    await this.#compactAsAsked(signal);
    const tokens = this.#tokens();
    if (tokens <= tokenLimit(this.#parts.window())) {
      this.#consecutive = 0;
      return;
    }
    if (tokens < this.#failedAt * GROWTH_BEFORE_RETRY) return;
    this.#consecutive += 1;
    if (this.#consecutive > MAX_CONSECUTIVE) {
      throw compactionError("fills_again");
    }
    try {
      await this.#compact("threshold", signal);
    } catch (error) {
      throwIfAborted(signal);
      this.#failedAt = tokens;
      this.#parts.emit({ type: "warning", message: errorMessage(error) });
    }
  }

  /**
   * Compacts once for a request that the provider refused as too long; false the second time,
   * when it makes no sense to send it again. Throws {@link CompactionError}.
   */
  async onOverflow(signal: AbortSignal): Promise<boolean> {
    if (this.#overflowHandled) return false;
    this.#overflowHandled = true;
    await this.#compact("overflow", signal);
    return true;
  }

  /** Compacts now, whatever the size; `instructions` says what to keep. Throws {@link CompactionError}. */
  async compactNow(signal: AbortSignal, instructions?: string): Promise<void> {
    await this.#compact("manual", signal, instructions);
  }

  /** Does what {@link schedule} asked for; a failure is told to the model, which may rely on it. */
  async #compactAsAsked(signal: AbortSignal): Promise<void> {
    const wish = this.#scheduled;
    if (!wish) return;
    this.#scheduled = undefined;
    try {
      await this.#compact("manual", signal, wish.instructions);
    } catch (error) {
      throwIfAborted(signal);
      const message = errorMessage(error);
      this.#parts.emit({ type: "warning", message });
      this.#parts.session.append({
        type: "custom_message",
        customType: "notice",
        content: `<notice>\nThe compaction that you asked for did not happen: ${message}.\n</notice>`,
        display: false,
      });
    }
  }

  #tokens(): number {
    return contextTokens(this.#parts.session.contextItems(), this.#parts.fixedTokens);
  }

  async #compact(
    reason: "threshold" | "overflow" | "manual",
    signal: AbortSignal,
    instructions?: string,
  ): Promise<void> {
    const { session, summarize, emit } = this.#parts;
    const tokensBefore = this.#tokens();
    const window = { ...this.#parts.window() };
    // A refused request shows that the window is smaller than the table says.
    if (reason === "overflow") window.contextWindow = Math.min(window.contextWindow, tokensBefore);
    const { entry, tokensAfter } = await compact({
      items: session.contextItems(),
      tokensBefore,
      window,
      ...(instructions !== undefined && { instructions }),
      summarize,
      signal,
    });
    session.append(entry);
    await this.#pruneNamespace(signal);
    this.#failedAt = 0;
    emit({ type: "compaction", reason, tokensBefore, tokensAfter });
  }

  /** Tells the model what the kernel still holds; a kernel that can't say so does not undo the summary. */
  async #pruneNamespace(signal: AbortSignal): Promise<void> {
    const { session, pruneNamespace, emit } = this.#parts;
    try {
      const report = await pruneNamespace?.(signal);
      if (!report) return;
      session.append({
        type: "custom_message",
        customType: "kernel_state",
        content: namespaceNote("compaction", report),
        display: false,
      });
    } catch (error) {
      throwIfAborted(signal);
      emit({
        type: "warning",
        message: `the kernel's names are not known: ${errorMessage(error)}`,
      });
    }
  }
}

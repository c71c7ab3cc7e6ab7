/**
 * Events as JSON lines, shaped like those that most parsers of coding agents
 * read. Every line has `type`, `session_id`, `uuid`, `seq` and `timestamp`.
 */

import type { AgentEvent, AgentOrigin } from "../agent/events.ts";
import type { AssistantMessage, ToolResultMessage, Usage } from "../message.ts";
import { escapeLineEnds } from "../printable.ts";

/** Version of this event format, sent in `system/init`. */
export const STREAM_SCHEMA = 1;

/** Settings of {@link StreamJson}. */
export interface StreamJsonOptions {
  sessionId: string;
  /** Also sends text and output as they come. */
  partial: boolean;
  /** Takes secrets out of a string value. */
  redact(text: string): string;
  write(line: string): void;
}

/** See the head of this file. */
export class StreamJson {
  readonly #options: StreamJsonOptions;
  #seq = 0;

  constructor(options: StreamJsonOptions) {
    this.#options = options;
  }

  /** Writes one line of any type. */
  send(type: string, fields: object): void {
    const line = {
      type,
      ...fields,
      session_id: this.#options.sessionId,
      uuid: crypto.randomUUID(),
      seq: this.#seq++,
      timestamp: new Date().toISOString(),
    };
    this.#options.write(`${encodeLine(line, this.#options.redact)}\n`);
  }

  /** Writes the line or lines that an event means; deltas only with partial messages. */
  onEvent(event: AgentEvent): void {
    const parent = {
      parent_tool_use_id: event.agent?.parentToolCallId ?? null,
      ...agentField(event.agent),
    };
    switch (event.type) {
      case "assistant":
        this.send("assistant", { message: assistantMessage(event.message), ...parent });
        return;
      case "tool_end": {
        const details = event.message.details ?? null;
        this.send("user", {
          message: toolResult(event.message),
          tool_use_result: details,
          ...parent,
        });
        return;
      }
      case "injected": {
        const message = { role: "user", content: [{ type: "text", text: event.text }] };
        this.send("user", { message, source: event.source, ...parent });
        return;
      }
      case "check": {
        const { command, passed, exitCode, output } = event;
        this.send("check", { command, passed, exit_code: exitCode, output });
        return;
      }
      default: {
        const system = systemFields(event);
        if (system) this.send("system", { ...system, ...parent });
        else if (this.#options.partial) this.#onPartial(event, parent);
      }
    }
  }

  /** Says that the run is alive; `elapsed_ms` counts from its start. */
  heartbeat(elapsedMs: number, activity: string): void {
    this.send("system", { subtype: "status", elapsed_ms: elapsedMs, activity });
  }

  #onPartial(event: AgentEvent, parent: object): void {
    if (event.type === "text_delta") {
      this.#delta({ type: "text_delta", text: event.text }, parent);
    } else if (event.type === "thinking_delta") {
      this.#delta({ type: "thinking_delta", thinking: event.text }, parent);
    } else if (event.type === "tool_call_delta") {
      this.#delta(
        { type: "input_json_delta", partial_json: event.delta, tool_use_id: event.id },
        parent,
      );
    } else if (event.type === "reply_restart") {
      this.send("stream_event", { event: { type: "message_restart" }, ...parent });
    } else if (event.type === "tool_output") {
      const { callId, stream, text } = event;
      this.send("tool_progress", { tool_use_id: callId, stream, text, ...parent });
    } else if (event.type === "kernel_progress") {
      this.send("tool_progress", { tool_use_id: null, stage: event.stage, ...parent });
    }
  }

  #delta(delta: object, parent: object): void {
    this.send("stream_event", { event: { type: "content_block_delta", delta }, ...parent });
  }
}

/**
 * JSON with secrets taken out of string values, never out of keys or structure. What some readers take
 * for the end of a line, and what a terminal takes for a command, is escaped.
 */
export function encodeLine(value: unknown, redact: (text: string) => string): string {
  const json = JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "string" ? redact(item).toWellFormed() : item,
  );
  return escapeLineEnds(json);
}

/** Usage in the names that parsers know. */
export function wireUsage(usage: Usage): object {
  return {
    input_tokens: usage.input,
    output_tokens: usage.output,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
    ...(usage.reasoning !== undefined && { reasoning_tokens: usage.reasoning }),
    total_tokens: usage.totalTokens,
  };
}

/** A stop reason in the names that parsers know; others stay as they are. */
export function wireStopReason(reason: string | undefined): string | null {
  const names: Record<string, string> = {
    stop: "end_turn",
    toolUse: "tool_use",
    length: "max_tokens",
  };
  return reason === undefined ? null : (names[reason] ?? reason);
}

/** The `system` line of an event that has one. */
function systemFields(event: AgentEvent): object | undefined {
  switch (event.type) {
    case "retry":
      return {
        subtype: "api_retry",
        attempt: event.attempt,
        max_retries: event.maxRetries,
        delay_ms: event.delayMs,
        reason: event.reason,
        http_status: event.httpStatus ?? null,
      };
    case "kernel":
      return {
        subtype: "kernel",
        state: event.state,
        boot_ms: event.bootMs ?? null,
        python: event.python ?? null,
        reason: event.reason ?? null,
      };
    case "compaction":
      return {
        subtype: "compact_boundary",
        trigger: event.reason,
        tokens_before: event.tokensBefore,
        tokens_after: event.tokensAfter ?? null,
      };
    case "child":
      return {
        subtype: "agent",
        state: event.state,
        usage: event.usage ? wireUsage(event.usage) : null,
      };
    case "warning":
      return { subtype: "warning", message: event.message };
    default:
      return undefined;
  }
}

function agentField(agent: AgentOrigin | undefined): object {
  return agent ? { agent: { id: agent.id, name: agent.name } } : {};
}

function assistantMessage(message: AssistantMessage): object {
  const content = message.content.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "thinking")
      return { type: "thinking", thinking: block.redacted ? "" : block.thinking };
    return {
      type: "tool_use",
      id: block.id,
      name: block.name,
      input: block.arguments,
      ...(block.malformed && { malformed: block.malformed }),
    };
  });
  return {
    id: message.responseId ?? null,
    type: "message",
    role: "assistant",
    model: `${message.provider}/${message.model}`,
    content,
    stop_reason: wireStopReason(message.stopReason),
    usage: wireUsage(message.usage),
  };
}

function toolResult(message: ToolResultMessage): object {
  const content = message.content.map((block) =>
    block.type === "text"
      ? { type: "text", text: block.text }
      : { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } },
  );
  return {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: message.toolCallId, content, is_error: message.isError },
    ],
  };
}

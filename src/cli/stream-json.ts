/**
 * Events as JSON lines, shaped like those that most parsers of coding agents
 * read. Every line has `type`, `session_id`, `uuid`, `seq` and `timestamp`.
 */

import type { AgentEvent, AgentOrigin } from "../agent/events.ts";
import type { AssistantMessage, ToolResultMessage, Usage } from "../message.ts";

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

  /** Writes the line or lines that an event means; most deltas only with partial messages. */
  onEvent(event: AgentEvent): void {
    const parent = {
      parent_tool_use_id: event.agent?.parentToolCallId ?? null,
      ...agentField(event.agent),
    };
    switch (event.type) {
      case "assistant":
        this.send("assistant", { message: assistantMessage(event.message), ...parent });
        return;
      case "tool_end":
        this.send("user", {
          message: toolResult(event.message),
          tool_use_result: event.message.details ?? null,
          ...parent,
        });
        return;
      case "injected": {
        const message = { role: "user", content: [{ type: "text", text: event.text }] };
        this.send("user", { message, source: event.source, ...parent });
        return;
      }
      case "retry": {
        const { type, agent, attempt, maxRetries, delayMs, reason, httpStatus } = event;
        void type;
        void agent;
        this.#system("api_retry", {
          attempt,
          max_retries: maxRetries,
          delay_ms: delayMs,
          reason,
          http_status: httpStatus ?? null,
          ...parent,
        });
        return;
      }
      case "kernel":
        this.#system("kernel", {
          state: event.state,
          boot_ms: event.bootMs ?? null,
          python: event.python ?? null,
          reason: event.reason ?? null,
          ...parent,
        });
        return;
      case "compaction":
        this.#system("compact_boundary", {
          trigger: event.reason,
          tokens_before: event.tokensBefore,
          tokens_after: event.tokensAfter ?? null,
          ...parent,
        });
        return;
      case "check":
        this.send("check", {
          command: event.command,
          passed: event.passed,
          exit_code: event.exitCode,
          output: event.output,
        });
        return;
      case "child":
        this.#system("agent", {
          state: event.state,
          usage: event.usage ? wireUsage(event.usage) : null,
          ...parent,
        });
        return;
      case "warning":
        this.#system("warning", { message: event.message, ...parent });
        return;
      default:
        if (this.#options.partial) this.#onPartial(event, parent);
    }
  }

  /** Says that the run is alive; `elapsed_ms` counts from its start. */
  heartbeat(elapsedMs: number, activity: string): void {
    this.#system("status", { elapsed_ms: elapsedMs, activity });
  }

  #system(subtype: string, fields: object): void {
    this.send("system", { subtype, ...fields });
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

/** JSON with secrets taken out of string values, never out of keys or structure. */
export function encodeLine(value: unknown, redact: (text: string) => string): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "string" ? redact(item).toWellFormed() : item,
  );
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
    role: "assistant",
    model: `${message.provider}/${message.model}`,
    content,
    stop_reason: message.stopReason,
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

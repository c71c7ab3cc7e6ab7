/** Keeps secrets out of what is shown piece by piece, where no piece alone may hold one. */

import type { AgentEvent, EventSink } from "./agent/events.ts";
import type { Redactor } from "./app-redact.ts";

/** The pieces of one stream: of an agent's text, of a call's arguments, of a cell's output. */
interface OpenStream {
  key: string;
  /** The text that waits, since it could be the beginning of a secret. */
  held: string;
  /** The event of a piece with another text. */
  piece(text: string): AgentEvent;
}

/**
 * Hands events on with the secrets taken out of their deltas. The end of a delta that could begin a
 * secret waits for the next one, or for the end of its stream.
 */
export function redactDeltas(redactor: Redactor, sink: EventSink): EventSink {
  /** By agent; "" is the root. */
  const open = new Map<string, OpenStream>();
  const close = (agent: string): void => {
    const stream = open.get(agent);
    open.delete(agent);
    if (stream?.held) sink(stream.piece(redactor.redact(stream.held)));
  };
  return (event) => {
    const agent = event.agent?.id ?? "";
    const next = streamOf(event);
    if (event.type === "reply_restart") open.delete(agent);
    else if (open.get(agent)?.key !== next?.key) close(agent);
    if (!next) return sink(event);
    const text = (open.get(agent)?.held ?? "") + next.held;
    const { shown, held } = redactor.split(text);
    open.set(agent, { ...next, held });
    if (shown) sink(next.piece(shown));
  };
}

/** The stream that an event is a piece of, with the piece's text; undefined for other events. */
function streamOf(event: AgentEvent): OpenStream | undefined {
  switch (event.type) {
    case "text_delta":
    case "thinking_delta":
      return { key: event.type, held: event.text, piece: (text) => ({ ...event, text }) };
    case "tool_call_delta":
      return { key: event.id, held: event.delta, piece: (delta) => ({ ...event, delta }) };
    case "tool_output": {
      const key = `${event.callId} ${event.stream}`;
      return { key, held: event.text, piece: (text) => ({ ...event, text }) };
    }
    default:
      return undefined;
  }
}

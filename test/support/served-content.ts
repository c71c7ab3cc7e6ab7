/** What the model of a scripted server says, the same for all wire formats, and how it is cut into deltas. */

/** A tool call of a reply; a string is the raw text of the arguments, valid or not. */
export interface ServedCall {
  id?: string;
  name: string;
  arguments: Record<string, unknown> | string;
}

/** What the model of a scripted server says. */
export interface ServedContent {
  thinking?: string;
  text?: string;
  toolCalls?: ServedCall[];
  /** `input` excludes the cached part. */
  usage?: {
    input: number;
    output: number;
    cacheRead?: number;
    cacheWrite?: number;
    reasoning?: number;
  };
  /** How the reply ends; `none` never says so. Follows from the calls when absent. */
  finish?: "stop" | "toolUse" | "length" | "filter" | "overflow" | "none";
  /** An error event inside the stream, after the content. */
  errorEvent?: { type: string; message: string };
  /** Length of each text delta, in characters. */
  deltaChars?: number;
}

/** Token counts with every field. */
export type ServedUsage = Required<NonNullable<ServedContent["usage"]>>;

/** The token counts of a reply; 100 in and 20 out when it says nothing. */
export function usageOf(content: ServedContent): ServedUsage {
  const none = { cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  return { ...none, ...(content.usage ?? { input: 100, output: 20 }) };
}

/** How a reply ends; its calls decide when it does not say. */
export function endOf(content: ServedContent): NonNullable<ServedContent["finish"]> {
  return content.finish ?? (content.toolCalls?.length ? "toolUse" : "stop");
}

/** The deltas of a text. */
export function deltasOf(content: ServedContent, text: string | undefined): string[] {
  const characters = [...(text ?? "")];
  const size = content.deltaChars ?? 8;
  const deltas: string[] = [];
  for (let start = 0; start < characters.length; start += size) {
    deltas.push(characters.slice(start, start + size).join(""));
  }
  return deltas;
}

/** The text of a call's arguments. */
export function jsonOf(call: ServedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
}

/** The id of the call at `index`. */
export function idOf(call: ServedCall, index: number): string {
  return call.id ?? `call_${index + 1}`;
}

/** An event without a name. */
export function dataEvent(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** An event with its type as name too. */
export function namedEvent(event: string, value: unknown): string {
  return `event: ${event}\n${dataEvent(value)}`;
}

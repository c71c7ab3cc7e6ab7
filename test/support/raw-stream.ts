/** Reads hand-written streams through a provider, in every form in which the same bytes may arrive. */

import type { ProviderEvent } from "../../src/providers/provider.ts";
import { collect, finalEvent, testModel, testRequest } from "./provider-call.ts";
import type { ServedApi } from "./provider-formats.ts";
import { ProviderServer } from "./provider-server.ts";

/** An event whose data is `value` as JSON. */
export function event(value: unknown, name?: string): string {
  const head = name === undefined ? "" : `event: ${name}\n`;
  return `${head}data: ${JSON.stringify(value)}\n\n`;
}

/**
 * The events of a stream, which must be the same whether it comes whole, with CRLF, between
 * comments, or byte by byte.
 */
export async function readStream(api: ServedApi, body: string): Promise<ProviderEvent[]> {
  const forms = [
    { body },
    { body: body.replaceAll("\n", "\r\n") },
    { body: `: hello\n\n${body.replaceAll("\n\n", "\n\n: keepalive\n\n")}` },
    { body, chunkBytes: 1 },
  ];
  await using server = await ProviderServer.start(forms);
  const request = testRequest(testModel(api, server.baseUrl(api)));
  const readings: ProviderEvent[][] = [];
  for (const _ of forms) readings.push(await collect(request));
  const [first = [], ...others] = readings;
  for (const other of others) {
    if (stable(other) !== stable(first)) {
      throw new Error(`the form changes the reading:\n${stable(first)}\n${stable(other)}`);
    }
  }
  finalEvent(first);
  return first;
}

/** Events without what differs between any two calls: times and ids that we made up. */
function stable(events: readonly ProviderEvent[]): string {
  return JSON.stringify(events, (key, value) => {
    if (key === "timestamp" || key === "ttftMs" || key === "durationMs") return undefined;
    return typeof value === "string" ? value.replace(/call_[0-9a-f]{32}/g, "call_made") : value;
  });
}

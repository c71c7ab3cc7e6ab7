/** When a failed request is tried again, and after how long (CONTRACT: 408, 409, 429, 5xx and transport faults). */

/** How often a request is retried unless the user says otherwise. */
export const DEFAULT_MAX_RETRIES = 3;

/** The longest wait that a provider may ask of us; beyond it the call fails and says when to come back. */
export const MAX_RETRY_AFTER_MS = 60_000;

const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 15_000;

/** Whether a response with this status may succeed when the same request is sent again. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/**
 * The wait before retry number `attempt` (from 1): what the provider asked for, else it doubles
 * from one second up to fifteen, less up to a quarter, so that many clients don't come back at once.
 */
export function retryDelayMs(
  attempt: number,
  retryAfterMs: number | undefined,
  random: () => number = Math.random,
): number {
  if (retryAfterMs !== undefined) return retryAfterMs;
  const full = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return Math.round(full * (1 - random() / 4));
}

/**
 * The wait that response headers ask for, in milliseconds: `retry-after-ms`, or `Retry-After`
 * (RFC 9110, section 10.2.3) as seconds or as a date. `undefined` if there is none that makes sense.
 */
export function parseRetryAfter(headers: Headers, now: number): number | undefined {
  const milliseconds = positive(headers.get("retry-after-ms"));
  if (milliseconds !== undefined) return Math.ceil(milliseconds);
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const seconds = positive(value);
  if (seconds !== undefined) return Math.ceil(seconds * 1_000);
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** What a person reads when a provider asks for a longer wait than {@link MAX_RETRY_AFTER_MS}. */
export function describeReset(retryAfterMs: number, now: number): string {
  const at = new Date(now + retryAfterMs).toISOString().replace(/\.\d+Z$/, "Z");
  return `it asks to wait ${formatWait(retryAfterMs)}, until ${at}`;
}

function formatWait(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 120) return `${minutes} min`;
  return `${Math.ceil(minutes / 60)} h`;
}

function positive(value: string | null): number | undefined {
  if (value === null || !/^\s*\d+(\.\d+)?\s*$/.test(value)) return undefined;
  return Number(value);
}

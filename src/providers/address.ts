/** Judges the addresses of servers. */

/** Whether this is an address that requests can be sent to. */
export function isHttpUrl(url: string): boolean {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);
}

/** Whether a server at this address runs on this machine. */
export function isLoopback(baseUrl: string): boolean {
  if (!URL.canParse(baseUrl)) return false;
  return /^(localhost|127(\.\d+){3}|\[::1\]|.+\.localhost)$/.test(new URL(baseUrl).hostname);
}

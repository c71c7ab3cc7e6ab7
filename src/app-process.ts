/** Reading what a helper process prints, in bounded memory. */

/**
 * Reads a stream to its end, or until `enough` settles, and returns its last `limit` characters, with a
 * mark when more came before.
 */
export async function drainCapped(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  enough: Promise<unknown>,
): Promise<string> {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  const over = enough.then(() => undefined);
  let text = "";
  let dropped = 0;
  const cut = () => {
    dropped += text.length - limit;
    text = text.slice(-limit);
  };
  for (;;) {
    const part = await Promise.race([reader.read(), over]);
    if (!part?.value) break;
    text += decoder.decode(part.value, { stream: true });
    if (text.length > 2 * limit) cut();
  }
  await reader.cancel();
  if (text.length > limit) cut();
  return dropped > 0 ? `[... ${dropped} chars before this ...]\n${text.toWellFormed()}` : text;
}

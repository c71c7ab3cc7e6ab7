/** Reading what a helper process prints, in bounded memory. */

/** Reads a stream to its end and returns its last `limit` characters, with a mark when more came before. */
export async function drainCapped(
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let dropped = 0;
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > 2 * limit) {
      dropped += text.length - limit;
      text = text.slice(-limit);
    }
  }
  if (text.length > limit) {
    dropped += text.length - limit;
    text = text.slice(-limit);
  }
  return dropped > 0 ? `[... ${dropped} chars before this ...]\n${text.toWellFormed()}` : text;
}

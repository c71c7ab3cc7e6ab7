/** Text as a person counts it: in characters (grapheme clusters), which editing never splits. */

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Text in which every UTF-16 unit is one character of one column. */
const SIMPLE = /^[\x20-\x7e]*$/;

/** UTF-16 units beyond which a cluster is cut. */
const MAX_CLUSTER = 256;

/** The characters of a text. */
export function graphemes(text: string): string[] {
  if (SIMPLE.test(text)) return text.split("");
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** The index where the character before `index` begins; 0 at the start. */
export function previousBoundary(text: string, index: number): number {
  if (index <= 0) return 0;
  const lineStart = text.lastIndexOf("\n", index - 1) + 1;
  if (lineStart === index) return index - 1;
  const last = graphemes(text.slice(lineStart, index)).at(-1) ?? "";
  return index - last.length;
}

/** The index after the character at `index`; the text's length at its end. */
export function nextBoundary(text: string, index: number): number {
  if (index >= text.length) return text.length;
  if (text[index] === "\n") return index + 1;
  const first = graphemes(text.slice(index, index + MAX_CLUSTER).split("\n", 1)[0] as string)[0];
  return index + (first ?? "").length;
}

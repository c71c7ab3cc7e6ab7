/** Text from a model, a cell or a file, made safe to print on a terminal. */

/**
 * Control characters except line feed and tab become visible escapes (`\x1b`), so that text can
 * neither move the cursor nor rename the window. A carriage return before a line feed is dropped.
 */
export function printable(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(CONTROL_CHARACTERS, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });
}

const CONTROL_CHARACTERS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** The first line of `text` with content, {@link printable}, in at most `width` characters. */
export function firstLine(text: string, width: number): string {
  const line = printable(text).trim().split("\n", 1)[0]?.replaceAll("\t", " ").trimEnd() ?? "";
  const characters = [...line];
  return characters.length > width ? `${characters.slice(0, width - 1).join("")}…` : line;
}

/**
 * JSON in one line of ASCII-safe breaks. JSON leaves DEL, the C1 controls (among them NEL) and the
 * Unicode separators as they are; readers that split lines the Unicode way would cut it there, and a
 * terminal would obey some of them.
 */
export function escapeLineEnds(json: string): string {
  return json.replace(/[\u007f-\u009f\u2028\u2029]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

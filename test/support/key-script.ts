/** Keys for tests, written as people say them: `hello<left><ctrl-w>`, `<paste a\nb>`. */

import type { Key } from "../../src/cli/key-decoder.ts";

/** The keys of a script. */
export function keysOf(script: string): Key[] {
  return (script.match(/<paste [^>]*>|<[a-z][^\s>]*>|<alt-[<>]>|./gsu) ?? []).map((part): Key => {
    if (part.startsWith("<paste ")) return { type: "paste", text: part.slice(7, -1) };
    const name = /^<(.+)>$/s.exec(part)?.[1];
    return name === undefined ? { type: "text", text: part } : { type: "key", name };
  });
}

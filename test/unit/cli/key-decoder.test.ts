import { describe, expect, test } from "bun:test";
import { KeyDecoder, type Key } from "../../../src/cli/key-decoder.ts";

const text = (value: string): Key => ({ type: "text", text: value });
const paste = (value: string): Key => ({ type: "paste", text: value });
const key = (name: string): Key => ({ type: "key", name });

/** What a terminal sends, and the keys that it means. */
const INPUTS: ReadonlyArray<[name: string, input: string, keys: Key[]]> = [
  ["letters", "hi there", [text("hi there")]],
  ["letters of several bytes", "é你😀", [text("é你😀")]],
  ["Enter and Ctrl-J", "\r\n", [key("enter"), key("ctrl-j")]],
  ["control letters", "\x01\x05\x1a", [key("ctrl-a"), key("ctrl-e"), key("ctrl-z")]],
  ["both backspaces", "\x7f\x08", [key("backspace"), key("ctrl-h")]],
  ["Tab and Shift-Tab", "\t\x1b[Z", [key("tab"), key("shift-tab")]],
  ["arrows", "\x1b[A\x1b[B\x1b[C\x1b[D", [key("up"), key("down"), key("right"), key("left")]],
  ["arrows of application mode", "\x1bOA\x1bOD", [key("up"), key("left")]],
  [
    "Home and End, three ways",
    "\x1b[H\x1bOF\x1b[1~\x1b[8~",
    ["home", "end", "home", "end"].map(key),
  ],
  ["Delete and Insert", "\x1b[3~\x1b[2~", [key("delete"), key("insert")]],
  [
    "arrows with modifiers",
    "\x1b[1;5D\x1b[1;3C\x1b[1;2A",
    ["ctrl-left", "alt-right", "shift-up"].map(key),
  ],
  ["all modifiers at once", "\x1b[1;8D", [key("ctrl-alt-shift-left")]],
  ["an escape before a sequence", "\x1b\x1b[D", [key("alt-left")]],
  ["Alt with letters", "\x1bb\x1bf\x1b<", [key("alt-b"), key("alt-f"), key("alt-<")]],
  ["Alt with a letter of two bytes", "\x1bé", [key("alt-é")]],
  ["Alt-Enter and Alt-Backspace", "\x1b\r\x1b\x7f", [key("alt-enter"), key("alt-backspace")]],
  ["Alt-Ctrl-J", "\x1b\n", [key("ctrl-alt-j")]],
  ["Shift-Enter as CSI u", "\x1b[13;2u", [key("shift-enter")]],
  ["Ctrl-Enter of xterm", "\x1b[27;5;13~", [key("ctrl-enter")]],
  ["Ctrl-A as CSI u", "\x1b[97;5u", [key("ctrl-a")]],
  ["a letter as CSI u", "\x1b[228u\x1b[65;2u", [text("ä"), text("A")]],
  ["CSI u with sub-parameters", "\x1b[97:65;5:1u", [key("ctrl-a")]],
  ["an unknown sequence is dropped whole", "a\x1b[99;99;99qb", [text("a"), text("b")]],
  ["function keys are dropped", "\x1bOP\x1b[15~\x1b[[Ax", [text("x")]],
  ["a sequence cut by Enter loses only itself", "\x1b[12\r", [key("enter")]],
  ["nothing for code points that are none", "\x1b[9999999u\x1b[0u\x1b[130u", []],
  ["C1 controls are dropped", "a\x9bb", [text("a"), text("b")]],
  ["bytes that are no UTF-8 become a mark", "\xff", [text("\ufffd")]],
  ["a paste of one line", "\x1b[200~ls -l\x1b[201~", [paste("ls -l")]],
  [
    "a paste of lines with every ending",
    "\x1b[200~a\rb\r\nc\nd\x1b[201~\r",
    [paste("a\nb\nc\nd"), key("enter")],
  ],
  [
    "a paste keeps tabs, but no colour and no control",
    "\x1b[200~\ta\x1b[31mb\x07\x1b[201~",
    [paste("\tab")],
  ],
  ["a paste with half a sequence loses nothing", "\x1b[200~a\x1b]0;b\x1b[201~", [paste("a]0;b")]],
  ["an empty paste", "\x1b[200~\x1b[201~", [paste("")]],
  ["text around a paste", "x\x1b[200~y\x1b[201~z", [text("x"), paste("y"), text("z")]],
  ["a paste of what looks like its end", "\x1b[200~[201~\x1b[20\x1b[201~", [paste("[201~[20")]],
];

/** The case of invalid bytes is written as Latin-1; all others are UTF-8. */
function bytesOf(input: string): Buffer {
  return Buffer.from(input, input === "\xff" ? "latin1" : "utf8");
}

/** Texts that were cut are one text again. */
function joined(keys: readonly Key[]): Key[] {
  const all: Key[] = [];
  for (const next of keys) {
    const last = all.at(-1);
    if (last?.type === "text" && next.type === "text")
      all[all.length - 1] = text(last.text + next.text);
    else all.push(next);
  }
  return all;
}

describe("the key decoder", () => {
  test.each(INPUTS)("reads %s", (_name, input, keys) => {
    const decoder = new KeyDecoder();
    expect([...decoder.push(bytesOf(input)), ...decoder.flush()]).toEqual(keys);
  });

  test.each(INPUTS)("reads %s cut at every byte", (_name, input, keys) => {
    const bytes = bytesOf(input);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const decoder = new KeyDecoder();
      const read = [...decoder.push(bytes.subarray(0, cut)), ...decoder.push(bytes.subarray(cut))];
      expect(joined(read)).toEqual(joined(keys));
    }
  });

  test.each(INPUTS)("reads %s byte by byte", (_name, input, keys) => {
    const decoder = new KeyDecoder();
    const read = [...bytesOf(input)].flatMap((byte) => decoder.push(Uint8Array.of(byte)));
    expect(joined(read)).toEqual(joined(keys));
  });

  test("takes a lone escape byte for the Escape key only after a silence", () => {
    const decoder = new KeyDecoder();
    expect(decoder.push(bytesOf("\x1b"))).toEqual([]);
    expect(decoder.isWaiting).toBe(true);
    expect(decoder.flush()).toEqual([key("escape")]);
    expect(decoder.isWaiting).toBe(false);
    expect(decoder.push(bytesOf("[A"))).toEqual([text("[A")]);
  });

  test("a silence in the middle of a paste ends nothing", () => {
    const decoder = new KeyDecoder();
    expect(decoder.push(bytesOf("\x1b[200~a\x1b"))).toEqual([]);
    expect(decoder.isWaiting).toBe(false);
    expect(decoder.flush()).toEqual([]);
    expect(decoder.push(bytesOf("[201~"))).toEqual([paste("a")]);
  });

  test("an endless sequence is given up", () => {
    const decoder = new KeyDecoder();
    expect(decoder.push(bytesOf(`\x1b[${"1;".repeat(100)}`))).toEqual([]);
    expect(decoder.push(bytesOf("a"))).toEqual([text("a")]);
  });

  test("a paste of a megabyte in small pieces arrives whole", () => {
    const decoder = new KeyDecoder();
    const content = "0123456789abcdef\n".repeat(60_000);
    const bytes = bytesOf(`\x1b[200~${content}\x1b[201~`);
    const read: Key[] = [];
    for (let start = 0; start < bytes.length; start += 4_096) {
      read.push(...decoder.push(bytes.subarray(start, start + 4_096)));
    }
    expect(read).toEqual([paste(content)]);
  });
});

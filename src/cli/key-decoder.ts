/**
 * Bytes of a terminal → keys. Knows the sequences of ECMA-48 terminals, xterm's modifiers, the
 * CSI u form of keys that have no sequence of their own, and bracketed paste. Input may be cut
 * anywhere; what is not known is dropped whole, so that no sequence ever turns into text.
 */

/** One key press, or text that was pasted. */
export type Key =
  | { type: "text"; text: string }
  /** Line breaks are `\n`; colours and other control characters but the tab are gone. */
  | { type: "paste"; text: string }
  /** Modifiers in the order ctrl, alt, shift: `enter`, `ctrl-a`, `alt-b`, `ctrl-left`, `shift-enter`. */
  | { type: "key"; name: string };

const PASTE_END = "\x1b[201~";

/** A sequence that is longer than this is noise. */
const MAX_SEQUENCE = 64;

/** Bits of a modifier parameter, which is one more than their sum. */
const MODIFIERS: ReadonlyArray<[bit: number, name: string]> = [
  [4, "ctrl-"],
  [2, "alt-"],
  [8, "alt-"],
  [1, "shift-"],
];

/** Final bytes of cursor keys, after CSI or SS3. */
const CURSOR_KEYS: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  F: "end",
  H: "home",
  M: "enter",
};

/** First parameters of sequences that end with a tilde. */
const TILDE_KEYS: Readonly<Record<string, string>> = {
  1: "home",
  2: "insert",
  3: "delete",
  4: "end",
  5: "page-up",
  6: "page-down",
  7: "home",
  8: "end",
};

/** Code points of keys whose character is a control character. */
const CONTROL_KEYS: Readonly<Record<number, string>> = {
  0x09: "tab",
  0x0d: "enter",
  0x1b: "escape",
  0x7f: "backspace",
};

/** See the head of this file. */
export class KeyDecoder {
  readonly #utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Text that is not decoded yet: the beginning of a sequence, or of a paste's end. */
  #held = "";
  #pasted: string | undefined;

  /** Whether a key may be incomplete; after a short silence {@link flush} settles it. */
  get isWaiting(): boolean {
    return this.#held !== "" && this.#pasted === undefined;
  }

  /** Takes bytes and returns the keys that are complete. */
  push(bytes: Uint8Array): Key[] {
    this.#held += this.#utf8.decode(bytes, { stream: true });
    return this.#drain();
  }

  /** Takes what is held as it is: a lone escape byte was the Escape key. */
  flush(): Key[] {
    if (!this.isWaiting) return [];
    const held = this.#held;
    this.#held = "";
    return held === "\x1b" ? [{ type: "key", name: "escape" }] : [];
  }

  #drain(): Key[] {
    const keys: Key[] = [];
    while (this.#held !== "") {
      const taken = this.#pasted === undefined ? this.#takeKey(keys) : this.#takePaste(keys);
      if (!taken) break;
    }
    return keys;
  }

  /** Takes one key or a run of text; false when more input is needed. */
  #takeKey(keys: Key[]): boolean {
    const text = /^[^\x00-\x1f\x7f-\x9f]+/.exec(this.#held)?.[0];
    if (text !== undefined) {
      keys.push({ type: "text", text });
      this.#held = this.#held.slice(text.length);
      return true;
    }
    if (!this.#held.startsWith("\x1b")) {
      const name = controlName(this.#held.charCodeAt(0));
      if (name !== undefined) keys.push({ type: "key", name });
      this.#held = this.#held.slice(1);
      return true;
    }
    const sequence = readSequence(this.#held);
    if (sequence === undefined) {
      if (this.#held.length <= MAX_SEQUENCE) return false;
      this.#held = "";
      return true;
    }
    this.#held = this.#held.slice(sequence.length);
    if (sequence.key === "paste-start") this.#pasted = "";
    else if (sequence.text !== undefined) keys.push({ type: "text", text: sequence.text });
    else if (sequence.key !== undefined) keys.push({ type: "key", name: sequence.key });
    return true;
  }

  /** Takes what was pasted so far; false when its end has not come. */
  #takePaste(keys: Key[]): boolean {
    const end = this.#held.indexOf(PASTE_END);
    if (end < 0) {
      const safe = Math.max(0, this.#held.length - PASTE_END.length + 1);
      this.#pasted += this.#held.slice(0, safe);
      this.#held = this.#held.slice(safe);
      return false;
    }
    keys.push({ type: "paste", text: cleanPaste(this.#pasted + this.#held.slice(0, end)) });
    this.#pasted = undefined;
    this.#held = this.#held.slice(end + PASTE_END.length);
    return true;
  }
}

interface Sequence {
  length: number;
  /** A key's name; absent for what is not known. */
  key?: string | undefined;
  /** Text that came as a sequence. */
  text?: string | undefined;
}

/** The sequence that `held` begins with; undefined when it is not complete. */
function readSequence(held: string): Sequence | undefined {
  // Some terminals put an escape byte before a sequence for Alt.
  if (/^\x1b\x1b[[O]/.test(held)) {
    const inner = readSequence(held.slice(1));
    return inner && { length: inner.length + 1, key: inner.key && withAlt(inner.key) };
  }
  if (held === "\x1b" || held === "\x1b\x1b") return undefined;
  if (held.startsWith("\x1b\x1b")) return { length: 1, key: "escape" };
  if (held.startsWith("\x1b[")) return readCsi(held);
  if (held.startsWith("\x1bO")) {
    if (held.length === 2) return undefined;
    return { length: 3, key: CURSOR_KEYS[held.charAt(2)] };
  }
  const character = String.fromCodePoint(held.codePointAt(1) as number);
  const name = controlName(character.codePointAt(0) as number) ?? character;
  return { length: 1 + character.length, key: withAlt(name) };
}

function readCsi(held: string): Sequence | undefined {
  // The Linux console's function keys have a second bracket.
  if (held.startsWith("\x1b[[")) return held.length < 4 ? undefined : { length: 4 };
  const match = /^\x1b\[([0-?]*)[ -/]*(.?)/s.exec(held) as RegExpExecArray;
  const [whole, parameters = "", final = ""] = match;
  if (final === "") return undefined;
  // A control character inside a sequence ends it without a meaning.
  if (!/[@-~]/.test(final)) return { length: whole.length - 1 };
  return { length: whole.length, ...csiKey(parameters, final) };
}

function csiKey(parameters: string, final: string): Omit<Sequence, "length"> {
  const [first = "", second = "", third = ""] = parameters
    .split(";")
    .map((parameter) => parameter.split(":", 1)[0] as string);
  if (final === "u") return codeKey(Number(first), second);
  if (final === "Z") return { key: "shift-tab" };
  if (final !== "~") {
    const key = CURSOR_KEYS[final];
    return { key: key && modifierPrefix(second) + key };
  }
  if (first === "27") return codeKey(Number(third), second);
  if (first === "200") return { key: "paste-start" };
  const key = TILDE_KEYS[first];
  return { key: key && modifierPrefix(second) + key };
}

/** A key given by its code point, as in xterm's modifyOtherKeys and the CSI u form. */
function codeKey(code: number, modifiers: string): Omit<Sequence, "length"> {
  if (!Number.isInteger(code) || code <= 0 || code > 0x10ffff) return {};
  const special = CONTROL_KEYS[code];
  const prefix = modifierPrefix(modifiers);
  if (special !== undefined) return { key: prefix + special };
  if (code < 0x20 || (code >= 0x80 && code < 0xa0)) return {};
  const character = String.fromCodePoint(code).toWellFormed();
  const isText = prefix === "" || prefix === "shift-";
  return isText ? { text: character } : { key: prefix.replace("shift-", "") + character };
}

function modifierPrefix(parameter: string): string {
  const bits = Math.max(0, Number(parameter || "1") - 1) || 0;
  const names = MODIFIERS.filter(([bit]) => (bits & bit) !== 0).map(([, name]) => name);
  return [...new Set(names)].join("");
}

function withAlt(name: string): string {
  if (/^(ctrl-)?alt-/.test(name)) return name;
  return name.startsWith("ctrl-") ? name.replace("ctrl-", "ctrl-alt-") : `alt-${name}`;
}

/** The name of a control character; undefined for a character that is none, or has no key. */
function controlName(code: number): string | undefined {
  const special = CONTROL_KEYS[code];
  if (special !== undefined) return special;
  return code < 0x20 ? `ctrl-${String.fromCharCode(code + 0x40).toLowerCase()}` : undefined;
}

/** Removes colours and the like; what only begins like a sequence loses no more than its escape byte. */
function cleanPaste(text: string): string {
  return text
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "")
    .replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
}

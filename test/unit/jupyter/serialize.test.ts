import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { ProtocolError } from "../../../src/jupyter/errors.ts";
import { createHeader, type JupyterMessage } from "../../../src/jupyter/message.ts";
import { DELIMITER, deserialize, serialize } from "../../../src/jupyter/serialize.ts";
import { MessageSigner, SignatureHistory } from "../../../src/jupyter/signing.ts";

const KEY = "a3f1c0de";
const signer = new MessageSigner(KEY);
const bytes = (text: string) => new TextEncoder().encode(text);
const octets = (...values: number[]) => new Uint8Array(values);

const HEADER = '{"msg_id":"m1","session":"s","username":"u","msg_type":"stream","version":"5.3"}';
const PARENT = '{"msg_id":"p1"}';
const CONTENT = '{"name":"stdout","text":"hi"}';

interface RawMessage {
  before?: Uint8Array[];
  header?: string | Uint8Array;
  parent?: string | Uint8Array;
  metadata?: string | Uint8Array;
  content?: string | Uint8Array;
  signature?: string;
  after?: Uint8Array[];
}

/** The frames of a message as a kernel would send them, valid unless `raw` says otherwise. */
function framesOf(raw: RawMessage = {}): Uint8Array[] {
  const parts = [
    raw.header ?? HEADER,
    raw.parent ?? PARENT,
    raw.metadata ?? "{}",
    raw.content ?? CONTENT,
  ].map((part) => (typeof part === "string" ? bytes(part) : part));
  const mac = createHmac("sha256", KEY).update(Buffer.concat(parts)).digest("hex");
  const signature = bytes(raw.signature ?? mac);
  return [...(raw.before ?? []), DELIMITER, signature, ...parts, ...(raw.after ?? [])];
}

const VALID: JupyterMessage = {
  identities: [],
  header: { msg_id: "m1", session: "s", username: "u", msg_type: "stream", version: "5.3" },
  parent_header: { msg_id: "p1" },
  metadata: {},
  content: { name: "stdout", text: "hi" },
  buffers: [],
};

const TOPIC = bytes("kernel.0a1b.stream.stdout");
const withContent = (content: object): JupyterMessage => ({ ...VALID, content: { ...content } });

const ACCEPTED: ReadonlyArray<{ name: string; raw: RawMessage; message: JupyterMessage }> = [
  { name: "no frame before the delimiter", raw: {}, message: VALID },
  {
    name: "three frames before the delimiter",
    raw: { before: [octets(0, 1), octets(), TOPIC] },
    message: { ...VALID, identities: [octets(0, 1), octets(), TOPIC] },
  },
  {
    name: "buffers: binary, empty, and one equal to the delimiter",
    raw: { after: [octets(0x00, 0xff), octets(), DELIMITER, bytes("{}")] },
    message: { ...VALID, buffers: [octets(0x00, 0xff), octets(), DELIMITER, bytes("{}")] },
  },
  {
    name: "content with invalid UTF-8, signed over the raw bytes",
    raw: { content: new Uint8Array([...bytes('{"text":"caf'), 0xe9, ...bytes('.txt"}')]) },
    message: withContent({ text: "caf\ufffd.txt" }),
  },
  {
    name: "content with lone surrogates as escapes",
    raw: { content: '{"text":"\\ud800x\\udc80"}' },
    message: withContent({ text: "\ud800x\udc80" }),
  },
  {
    name: "content that begins with a byte order mark",
    raw: { content: `\ufeff${CONTENT}` },
    message: VALID,
  },
  {
    name: "an integer beyond 2^53, with the precision of a double",
    raw: { content: '{"n":9007199254740993}' },
    message: withContent({ n: 9007199254740992 }),
  },
  {
    name: "an embedded zero character",
    raw: { content: '{"text":"a\\u0000b"}' },
    message: withContent({ text: "a\0b" }),
  },
  {
    name: "bare NaN and infinities of an old kernel, outside of strings only",
    raw: {
      content:
        '{"x":[NaN,Infinity,-Infinity,-1.5],"y":NaN,"text":"NaN \\" Infinity \\\\","z":"-Infinity"}',
    },
    message: withContent({
      x: ["NaN", "Infinity", "-Infinity", -1.5],
      y: "NaN",
      text: 'NaN " Infinity \\',
      z: "-Infinity",
    }),
  },
  {
    name: "an empty parent header",
    raw: { parent: "{}" },
    message: { ...VALID, parent_header: {} },
  },
  {
    name: "empty content, as in some kernels' shutdown_reply",
    raw: { content: "{}" },
    message: withContent({}),
  },
  {
    name: "white space around and in the JSON",
    raw: { content: ' {\n"name": "stdout",\t"text": "hi" }\n' },
    message: VALID,
  },
  {
    name: "a key named __proto__, which stays data",
    raw: { content: '{"__proto__":{"polluted":true}}' },
    message: { ...VALID, content: JSON.parse('{"__proto__":{"polluted":true}}') },
  },
];

test.each([...ACCEPTED])("a message with $name is accepted", ({ raw, message }) => {
  expect(deserialize(framesOf(raw), signer)).toEqual(message);
});

const good = framesOf();
const upper = new TextDecoder().decode(good[1]).toUpperCase();
const other = createHmac("sha256", "another key").update("x").digest("hex");

const REFUSED: ReadonlyArray<{ name: string; frames: Uint8Array[]; error: object }> = [
  { name: "no frames", frames: [], error: { kind: "missing_delimiter" } },
  { name: "no delimiter", frames: good.slice(1), error: { kind: "missing_delimiter" } },
  {
    name: "a delimiter that is only part of a frame",
    frames: [bytes("x<IDS|MSG>"), bytes("<IDS|MSG"), ...good.slice(1)],
    error: { kind: "missing_delimiter" },
  },
  ...[1, 2, 3, 4, 5].map((count) => ({
    name: `${count - 1} frames after the delimiter`,
    frames: good.slice(0, count),
    error: { kind: "missing_frames" },
  })),
  {
    name: "an empty signature",
    frames: framesOf({ signature: "" }),
    error: { kind: "missing_signature" },
  },
  {
    name: "an upper-case signature",
    frames: framesOf({ signature: upper }),
    error: { kind: "bad_signature" },
  },
  {
    name: "the signature of another key",
    frames: framesOf({ signature: other }),
    error: { kind: "bad_signature" },
  },
  {
    name: "a bad signature and bad JSON: it is verified before it is parsed",
    frames: framesOf({ signature: other, header: "{" }),
    error: { kind: "bad_signature" },
  },
  {
    name: "parts in another order than they were signed in",
    frames: [...good.slice(0, 2), bytes(PARENT), bytes(HEADER), ...good.slice(4)],
    error: { kind: "bad_signature" },
  },
  {
    name: "an empty header",
    frames: framesOf({ header: "" }),
    error: { kind: "bad_json", part: "header" },
  },
  {
    name: "a header without msg_id",
    frames: framesOf({ header: '{"msg_type":"x"}' }),
    error: { kind: "bad_part", part: "header" },
  },
  {
    name: "a header whose msg_type is no string",
    frames: framesOf({ header: '{"msg_id":"m","msg_type":5}' }),
    error: { kind: "bad_part", part: "header" },
  },
  {
    name: "a parent header that is null",
    frames: framesOf({ parent: "null" }),
    error: { kind: "bad_part", part: "parent_header" },
  },
  {
    name: "metadata that is a list",
    frames: framesOf({ metadata: "[]" }),
    error: { kind: "bad_part", part: "metadata" },
  },
  {
    name: "content that is a string",
    frames: framesOf({ content: '"text"' }),
    error: { kind: "bad_part", part: "content" },
  },
  {
    name: "content that is cut off",
    frames: framesOf({ content: CONTENT.slice(0, -2) }),
    error: { kind: "bad_json", part: "content" },
  },
  {
    name: "content that is cut off behind a backslash",
    frames: framesOf({ content: '{"text":"\\' }),
    error: { kind: "bad_json", part: "content" },
  },
  {
    name: "a word that only looks like NaN",
    frames: framesOf({ content: '{"x":NaNa}' }),
    error: { kind: "bad_json", part: "content" },
  },
];

test.each([...REFUSED])("a message with $name is refused", ({ frames, error }) => {
  let thrown: unknown;
  try {
    deserialize(frames, signer);
  } catch (caught) {
    thrown = caught;
  }
  expect(thrown).toBeInstanceOf(ProtocolError);
  expect(thrown).toMatchObject({ code: "jupyter_protocol", ...error });
});

describe("a message that comes again", () => {
  test("is refused by a history that has seen it, and accepted by another connection's", () => {
    const history = new SignatureHistory();
    deserialize(good, signer, history);
    expect(() => deserialize(good, signer, history)).toThrow("came again");
    expect(deserialize(good, signer, new SignatureHistory())).toEqual(VALID);
  });

  test("is accepted if messages are unsigned", () => {
    const unsigned = new MessageSigner("");
    const history = new SignatureHistory();
    const frames = framesOf({ signature: "" });
    deserialize(frames, unsigned, history);
    expect(deserialize(frames, unsigned, history)).toEqual(VALID);
  });

  test("is not remembered if its signature was bad", () => {
    const history = new SignatureHistory();
    const forged = [...good.slice(0, 5), bytes("{}")];
    expect(() => deserialize(forged, signer, history)).toThrow(ProtocolError);
    expect(deserialize(good, signer, history)).toEqual(VALID);
  });
});

describe("serialize", () => {
  const message: JupyterMessage = {
    ...VALID,
    identities: [bytes("router-id")],
    header: createHeader("execute_request", "m1", "s", "sub-1"),
    content: { code: "print('h\u00e9 \u{1f600}')" },
    buffers: [octets(0, 255), octets(), DELIMITER],
  };

  test("gives frames that deserialize gives back", () => {
    expect(deserialize(serialize(message, signer), signer)).toEqual(message);
    const unsigned = new MessageSigner("");
    expect(serialize(message, unsigned)[2]).toEqual(octets());
    expect(deserialize(serialize(message, unsigned), unsigned)).toEqual(message);
  });

  test("replaces lone surrogates anywhere, and keeps pairs and escapes in the text", () => {
    const content = { code: "a\ud800b \u{1f600} '\\ud800'", list: ["\udc80"] };
    const frames = serialize({ ...VALID, content }, signer);
    expect(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(frames[5]))).toEqual({
      code: "a\ufffdb \u{1f600} '\\ud800'",
      list: ["\ufffd"],
    });
  });

  test("puts subshell_id and an ISO date into the header", () => {
    expect(message.header).toEqual({
      msg_id: "m1",
      session: "s",
      username: "prime-agent",
      date: new Date(message.header.date ?? "").toISOString(),
      msg_type: "execute_request",
      version: "5.3",
      subshell_id: "sub-1",
    });
    expect(createHeader("x", "m2", "s")).not.toHaveProperty("subshell_id");
  });
});

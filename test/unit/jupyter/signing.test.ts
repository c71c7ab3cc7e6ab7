import { describe, expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";
import {
  MessageSigner,
  NATIVE_FROM_BYTES,
  nativeHmac,
  portableHmac,
  SignatureHistory,
} from "../../../src/jupyter/signing.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const hex = (digits: string) => new Uint8Array(Buffer.from(digits, "hex"));

/** RFC 4231, section 4: key, data and HMAC-SHA-256 (of test case 5 the first 128 bits). */
const RFC_4231: ReadonlyArray<{ name: string; key: Uint8Array; data: Uint8Array; mac: string }> = [
  {
    name: "4.2, test case 1",
    key: hex("0b".repeat(20)),
    data: bytes("Hi There"),
    mac: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  },
  {
    name: "4.3, test case 2: a key shorter than the hash",
    key: bytes("Jefe"),
    data: bytes("what do ya want for nothing?"),
    mac: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  },
  {
    name: "4.4, test case 3: key and data of more than 64 bytes",
    key: hex("aa".repeat(20)),
    data: hex("dd".repeat(50)),
    mac: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
  },
  {
    name: "4.5, test case 4",
    key: hex("0102030405060708090a0b0c0d0e0f10111213141516171819"),
    data: hex("cd".repeat(50)),
    mac: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
  },
  {
    name: "4.6, test case 5: truncated",
    key: hex("0c".repeat(20)),
    data: bytes("Test With Truncation"),
    mac: "a3b6167473100ee06e0c796c2955552b",
  },
  {
    name: "4.7, test case 6: a key larger than the block",
    key: hex("aa".repeat(131)),
    data: bytes("Test Using Larger Than Block-Size Key - Hash Key First"),
    mac: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
  },
  {
    name: "4.8, test case 7: key and data larger than the block",
    key: hex("aa".repeat(131)),
    data: bytes(
      "This is a test using a larger than block-size key and a larger than block-size data. " +
        "The key needs to be hashed before being used by the HMAC algorithm.",
    ),
    mac: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
  },
];

const IMPLEMENTATIONS = { portable: portableHmac, native: nativeHmac };

describe.each(Object.entries(IMPLEMENTATIONS))("the %s HMAC", (_name, makeHmac) => {
  test.each([...RFC_4231])("gives the MAC of RFC 4231, $name", ({ key, data, mac }) => {
    const hmac = makeHmac(key);
    expect(hmac([data]).slice(0, mac.length)).toBe(mac);
    // The frame boundaries do not matter, and a used key can be used again.
    expect(hmac([data.subarray(0, 3), data.subarray(3)]).slice(0, mac.length)).toBe(mac);
  });

  test("agrees with node:crypto around every block boundary and for large frames", () => {
    const key = randomBytes(32);
    const hmac = makeHmac(key);
    for (const size of [0, 1, 55, 56, 63, 64, 65, 127, 128, 1023, 1024, 300_000]) {
      const data = randomBytes(size);
      expect(hmac([data])).toBe(createHmac("sha256", key).update(data).digest("hex"));
    }
  });
});

describe("a message signer", () => {
  const sizes = [0, NATIVE_FROM_BYTES - 1, NATIVE_FROM_BYTES, NATIVE_FROM_BYTES + 1, 100_000];

  test.each(sizes)("verifies what it signed over %d bytes, and nothing else", (size) => {
    const signer = new MessageSigner("a-key");
    const parts = [randomBytes(size), bytes("{}"), bytes("{}"), bytes("{}")];
    const signature = signer.sign(parts);
    const expected = createHmac("sha256", "a-key").update(Buffer.concat(parts)).digest("hex");
    expect(new TextDecoder().decode(signature)).toBe(expected);
    expect(signer.verify(parts, signature)).toBe(true);
    expect(signer.verify([...parts, bytes(" ")], signature)).toBe(false);
    expect(new MessageSigner("another-key").verify(parts, signature)).toBe(false);
  });

  test("takes the key as UTF-8 text, not as hex", () => {
    const signature = new MessageSigner("6b657e").sign([bytes("x")]);
    const expected = createHmac("sha256", "6b657e").update("x").digest("hex");
    expect(new TextDecoder().decode(signature)).toBe(expected);
  });

  test("refuses a signature that differs anywhere, is upper case, short, long or empty", () => {
    const signer = new MessageSigner("a-key");
    const parts = [bytes("data")];
    const good = signer.sign(parts);
    for (let i = 0; i < good.length; i += 1) {
      const bad = good.slice();
      bad[i] = (bad[i] as number) ^ 1;
      expect(signer.verify(parts, bad)).toBe(false);
    }
    const text = new TextDecoder().decode(good);
    for (const bad of [text.toUpperCase(), text.slice(1), `${text}0`, ""]) {
      expect(signer.verify(parts, bytes(bad))).toBe(false);
    }
  });

  test("neither signs nor checks with an empty key", () => {
    const signer = new MessageSigner("");
    expect(signer.sign([bytes("data")])).toEqual(new Uint8Array(0));
    expect(signer.verify([bytes("data")], new Uint8Array(0))).toBe(true);
    expect(signer.verify([bytes("data")], bytes("signed all the same"))).toBe(true);
  });
});

describe("a signature history", () => {
  test("knows a signature again, and forgets those of long ago", () => {
    const history = new SignatureHistory();
    expect(history.add(bytes("first"))).toBe(true);
    expect(history.add(bytes("first"))).toBe(false);
    for (let i = 0; i < 1500; i += 1) expect(history.add(bytes(`${i}`))).toBe(true);
    expect(history.add(bytes("first"))).toBe(false);
    for (let i = 1500; i < 4000; i += 1) expect(history.add(bytes(`${i}`))).toBe(true);
    expect(history.add(bytes("first"))).toBe(true);
  });
});

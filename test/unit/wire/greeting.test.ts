import { describe, expect, test } from "bun:test";
import {
  MechanismError,
  NotZmtpError,
  type WireError,
  ZmtpVersionError,
} from "../../../src/wire/errors.ts";
import { GREETING_BYTES, GreetingDecoder, encodeGreeting } from "../../../src/wire/greeting.ts";
import { ascii, greeting, hex, octets } from "../../support/zmtp-peer.ts";

function errorOf(bytes: Uint8Array): WireError {
  const decoder = new GreetingDecoder();
  try {
    decoder.push(bytes);
  } catch (error) {
    return error as WireError;
  }
  throw new Error("the greeting was accepted");
}

test("our greeting is ZMTP 3.0 with NULL, 64 octets, nothing else set", () => {
  const expected = `ff0000000000000000 7f 03 00 4e554c4c ${"00".repeat(48)}`;
  expect(encodeGreeting()).toEqual(hex(expected.replaceAll(" ", "")));
});

describe("a greeting that is accepted", () => {
  const padded = greeting();
  padded.set(hex("a1b2c3d4e5f60718"), 1);
  const filled = greeting();
  filled.fill(0xee, 33);
  const asServer = greeting();
  asServer[32] = 1;

  const cases: ReadonlyArray<readonly [string, Uint8Array]> = [
    ["version 3.0", greeting({ minor: 0 })],
    ["version 3.1", greeting()],
    // "A peer MUST accept higher protocol versions as valid."
    ["version 4.0", greeting({ major: 4, minor: 0 })],
    ["version 255.255", greeting({ major: 255, minor: 255 })],
    // "MUST NOT validate this nor interpret it in any way whatsoever"
    ["any padding", padded],
    ["any filler", filled],
    // "The as-server field SHALL have no significance."
    ["as-server set", asServer],
  ];

  for (const [name, bytes] of cases) {
    test(`${name}: taken whole, in one piece or octet by octet`, () => {
      const whole = new GreetingDecoder();
      expect(whole.push(octets(bytes, ascii("next")))).toBe(GREETING_BYTES);
      expect(whole.complete).toBe(true);

      const split = new GreetingDecoder();
      for (const octet of bytes) {
        expect(split.complete).toBe(false);
        expect(split.push(Uint8Array.of(octet))).toBe(1);
      }
      expect(split.complete).toBe(true);
    });
  }
});

describe("a greeting that is refused as soon as its first wrong part is there", () => {
  const signature = "ff00000000000000017f";
  const mechanism = (name: string) => greeting({ mechanism: name }).slice(0, 32);
  const cases: ReadonlyArray<readonly [string, Uint8Array, WireError]> = [
    ["an HTTP reply", ascii("HTTP/1.1 400 Bad"), new NotZmtpError(ascii("HTTP/1.1 400 Bad"))],
    ["an SSH banner", ascii("SSH-2.0-x"), new NotZmtpError(ascii("SSH-2.0-x"))],
    ["a TLS alert", hex("150303000202"), new NotZmtpError(hex("150303000202"))],
    ["zeros", hex("00"), new NotZmtpError(hex("00"))],
    ["a MySQL greeting", hex("4a0000000a"), new NotZmtpError(hex("4a0000000a"))],
    ["01 that is not followed by 00", hex("0105"), new NotZmtpError(hex("0105"))],
    [
      "FF with another end of signature",
      hex("ff000000000000000101"),
      new NotZmtpError(hex("ff000000000000000101")),
    ],
    ["ZMTP 1.0, anonymous", hex("0100"), new ZmtpVersionError("1.0")],
    ["ZMTP 1.0, long form", hex("ff000000000000000100"), new ZmtpVersionError("1.0")],
    ["ZMTP 1.0 by its revision", hex(`${signature}00`), new ZmtpVersionError("1.0")],
    ["ZMTP 2.0", hex(`${signature}01`), new ZmtpVersionError("2.0")],
    ["ZMTP 2.1", hex(`${signature}02`), new ZmtpVersionError("2.0")],
    ["PLAIN", mechanism("PLAIN"), new MechanismError("PLAIN")],
    ["CURVE", mechanism("CURVE"), new MechanismError("CURVE")],
    ["a longer name", mechanism("NULLX"), new MechanismError("NULLX")],
    ["a shorter name", mechanism("NUL"), new MechanismError("NUL")],
    ["lower case", mechanism("null"), new MechanismError("null")],
    ["junk after the padding", mechanism("NULL\0X"), new MechanismError("NULL\0X")],
    ["20 letters", mechanism("ABCDEFGHIJKLMNOPQRST"), new MechanismError("ABCDEFGHIJKLMNOPQRST")],
    ["no mechanism", mechanism(""), new MechanismError("")],
  ];

  for (const [name, bytes, expected] of cases) {
    test(name, () => {
      const error = errorOf(bytes);
      expect({ code: error.code, message: error.message }).toEqual({
        code: expected.code,
        message: expected.message,
      });
      expect(error.fatal).toBe(true);

      const split = new GreetingDecoder();
      const pushEach = () => {
        for (const octet of bytes) split.push(Uint8Array.of(octet));
      };
      expect(pushEach).toThrow(error.constructor as typeof NotZmtpError);
    });
  }

  test("not before: one octet less is no error yet", () => {
    const proper = cases.filter(([, bytes]) => bytes[0] === 0xff || bytes[0] === 0x01);
    for (const [, bytes] of proper) {
      expect(new GreetingDecoder().push(bytes.subarray(0, -1))).toBe(bytes.length - 1);
    }
  });
});

test("an error shows what came instead, as text where it is text", () => {
  expect(errorOf(ascii("HTTP/1.1 400 Bad Request\r\n")).message).toBe(
    'the peer is not ZMTP (first bytes 48 54 54 50 2f 31 2e 31 20 34 30 30 20 42 61 64, "HTTP/1.1 400 Bad")',
  );
  expect(errorOf(hex("150303000202")).message).toBe(
    "the peer is not ZMTP (first bytes 15 03 03 00 02 02)",
  );
});

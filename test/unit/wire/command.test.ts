import { describe, expect, test } from "bun:test";
import {
  decodeCommand,
  decodeError,
  decodePing,
  decodeReady,
  encodeError,
  encodePong,
  encodeReady,
  encodeSubscription,
} from "../../../src/wire/command.ts";
import {
  IdentityError,
  MalformedCommandError,
  MalformedReadyError,
} from "../../../src/wire/errors.ts";
import { ascii, command, hex, octets, property, ready } from "../../support/zmtp-peer.ts";

const EMPTY = new Uint8Array(0);

describe("what we send", () => {
  const identity = ascii("0123456789abcdef");
  const longTopic = new Uint8Array(300).fill(0x74);
  const cases: ReadonlyArray<readonly [string, Uint8Array, Uint8Array]> = [
    ["READY of a SUB", encodeReady("SUB"), ready("SUB")],
    [
      "READY with a routing id",
      encodeReady("DEALER", identity),
      ready("DEALER", property("Identity", identity)),
    ],
    [
      "READY with the longest routing id, in a long frame",
      encodeReady("DEALER", new Uint8Array(255).fill(7)),
      ready("DEALER", property("Identity", new Uint8Array(255).fill(7))),
    ],
    ["ERROR", encodeError("no"), command("ERROR", hex("026e6f"))],
    ["PONG without a context", encodePong(EMPTY), hex("040504504f4e47")],
    ["PONG with one", encodePong(hex("7a7a")), hex("040704504f4e477a7a")],
    // Not the SUBSCRIBE command: a peer may know the message form only.
    ["a subscription to everything", encodeSubscription(EMPTY), hex("000101")],
    ["a subscription to a topic", encodeSubscription(ascii("abc")), hex("000401616263")],
    [
      "a subscription to a long topic",
      encodeSubscription(longTopic),
      octets(hex("02000000000000012d01"), longTopic),
    ],
  ];

  for (const [name, actual, expected] of cases) {
    test(name, () => {
      expect(actual.toHex()).toBe(expected.toHex());
    });
  }

  for (const [name, bytes] of [
    ["empty", EMPTY],
    ["of 256 octets", new Uint8Array(256).fill(1)],
    // "The first octet of the Identity SHALL NOT be zero."
    ["that starts with 00", hex("0041")],
  ] as const) {
    test(`a routing id ${name} is refused`, () => {
      expect(() => encodeReady("DEALER", bytes)).toThrow(IdentityError);
    });
  }
});

describe("a command", () => {
  test("is taken apart into name and data", () => {
    expect(decodeCommand(hex("03464f4f6261"))).toEqual({ name: "FOO", data: ascii("ba") });
    expect(decodeCommand(hex("03464f4f"))).toEqual({ name: "FOO", data: EMPTY });
  });

  for (const [name, body] of [
    ["empty", ""],
    ["with an empty name", "00"],
    ["with an empty name and data", "0041"],
    ["whose name runs past its end", "094142"],
    ["that is only the length of a name", "05"],
  ] as const) {
    test(`${name} is malformed`, () => {
      expect(() => decodeCommand(hex(body))).toThrow(MalformedCommandError);
    });
  }
});

describe("a READY", () => {
  const type = "0b536f636b65742d5479706500000003505542";

  test("gives the socket type and all properties by their lower-case names", () => {
    const data = octets(hex(type), property("X-Thing", hex("00ff")), property("RESOURCE", EMPTY));
    expect(decodeReady(data)).toEqual({
      socketType: "PUB",
      properties: new Map([
        ["socket-type", ascii("PUB")],
        ["x-thing", hex("00ff")],
        ["resource", EMPTY],
      ]),
    });
  });

  test("may have no properties at all", () => {
    expect(decodeReady(EMPTY)).toEqual({ socketType: undefined, properties: new Map() });
  });

  test("with a property twice has the last one", () => {
    const data = octets(
      property("Socket-Type", ascii("PUB")),
      property("SOCKET-TYPE", ascii("XPUB")),
    );
    expect(decodeReady(data).socketType).toBe("XPUB");
  });

  test("keeps no hold on the buffer it came in", () => {
    const data = octets(property("X-A", ascii("value")));
    const { properties } = decodeReady(data);
    data.fill(0);
    expect(properties.get("x-a")).toEqual(ascii("value"));
  });

  for (const [name, data] of [
    ["a property without a name", `${type}000000000178`],
    ["a name past the end", "50536f636b6574"],
    ["the length of a name and nothing more", `${type}01`],
    ["a stray zero at the end", `${type}00`],
    ["a name without a value", "0161"],
    ["half the size of a value", "01610000"],
    ["a value past the end", "01610000000262"],
    ["a value of FFFFFFFF octets", "0161ffffffff"],
    ["a value of 80000000 octets", "01618000000062"],
    ["a good property before a bad one", `${type}0161ffffffff`],
  ] as const) {
    test(`with ${name} is malformed`, () => {
      expect(() => decodeReady(hex(data))).toThrow(MalformedReadyError);
    });
  }
});

describe("other commands", () => {
  test("the reason of an ERROR is read as far as it is there", () => {
    expect(decodeError(hex("03627965"))).toBe("bye");
    expect(decodeError(hex("80616263"))).toBe("abc");
    expect(decodeError(hex("0161ff"))).toBe("a");
    expect(decodeError(EMPTY)).toBe("");
  });

  test("the context of a PING is cut to the 16 octets that a PONG may have", () => {
    const context = "000102030405060708090a0b0c0d0e0f";
    expect(decodePing(hex("0000"))).toEqual(EMPTY);
    expect(decodePing(hex(`012c${context}`))).toEqual(hex(context));
    expect(decodePing(hex(`0000${context}1011`))).toEqual(hex(context));
  });

  test("a PING without its TTL is malformed", () => {
    expect(() => decodePing(EMPTY)).toThrow(MalformedCommandError);
    expect(() => decodePing(hex("00"))).toThrow(MalformedCommandError);
  });
});

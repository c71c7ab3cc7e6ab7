import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { encodeRecord, type SessionEntry } from "../../../src/agent/session-entry.ts";
import { parseSession, SessionWriter } from "../../../src/agent/session-file.ts";
import { user } from "../../support/transcript.ts";

const HEADER =
  '{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}\n';

function line(id: string, parentId: string | null, text = id): string {
  const timestamp = "2026-01-01T00:00:00.000Z";
  return encodeRecord({ type: "message", id, parentId, timestamp, message: user(text) });
}

function parse(text: string | Buffer) {
  const content = parseSession(Buffer.from(text as string));
  return {
    ids: content.entries.map((entry) => entry.id),
    faults: content.faults.map((fault) => `${fault.kind} ${fault.line}`),
  };
}

const NULS = "\0".repeat(300);

describe("parseSession", () => {
  const whole = HEADER + line("a", null) + line("b", "a");
  const cases: Array<[name: string, text: string, ids: string[], faults: string[]]> = [
    ["a sound file has no faults", whole, ["a", "b"], []],
    ["a last line without its line break is intact", whole.slice(0, -1), ["a", "b"], []],
    ["blank lines are nothing", `\n${HEADER}\n\r\n  \n${line("a", null)}\n\n`, ["a"], []],
    [
      "CRLF and a byte order mark are tolerated",
      `\uFEFF${HEADER}${line("a", null)}`.replaceAll("\n", "\r\n"),
      ["a"],
      [],
    ],
    [
      "garbage between records is skipped",
      `${HEADER}garbage\n${line("a", null)}[1]\n"x"\n{}\n7\n`,
      ["a"],
      ["damaged 2", "damaged 4", "damaged 5", "damaged 6", "damaged 7"],
    ],
    [
      "a message entry without a message is skipped",
      `${HEADER}{"type":"message","id":"a","parentId":null}\n`,
      [],
      ["damaged 2"],
    ],
    [
      "NUL bytes on a line of their own cost nothing else",
      `${HEADER}${line("a", null)}${NULS}\n${line("b", "a")}`,
      ["a", "b"],
      ["damaged 3"],
    ],
    [
      "NUL bytes before a record leave it intact",
      `${HEADER}${line("a", null)}${NULS}${line("b", "a")}`,
      ["a", "b"],
      ["damaged 3"],
    ],
    [
      "NUL bytes in place of a line break leave both records intact",
      `${HEADER}${line("a", null).trim()}${NULS}${line("b", "a")}`,
      ["a", "b"],
      ["damaged 2"],
    ],
    ["NUL bytes at the end are a torn tail", `${whole}${NULS}`, ["a", "b"], ["torn 4"]],
    [
      "NUL bytes inside a record cost that record only",
      `${HEADER}${line("a", null).replace("role", `ro${NULS}le`)}${line("b", "a")}`,
      ["b"],
      ["damaged 2"],
    ],
    [
      "a record glued to a fragment is found",
      `${HEADER}{"type":"message","id":"x","par${line("a", null)}`,
      ["a"],
      ["damaged 2"],
    ],
    [
      "two records glued together are both found",
      `${HEADER}${line("a", null).trim()}${line("b", "a")}`,
      ["a", "b"],
      ["damaged 2"],
    ],
    [
      "the text of a record inside a message is not taken for one",
      `${HEADER}${line("a", null, line("inner", null))}`,
      ["a"],
      [],
    ],
  ];
  test.each(cases)("%s", (_name, text, ids, faults) => {
    expect(parse(text)).toEqual({ ids, faults });
  });

  test("a last record cut at any byte costs that record only", () => {
    const before = HEADER + line("a", null);
    const last = Buffer.from(line("b", "a", 'Zoë 🐍 ٣ "quoted" \u2028 end').slice(0, -1));
    for (let cut = 1; cut < last.length; cut += 1) {
      const torn = Buffer.concat([Buffer.from(before), last.subarray(0, cut)]);
      expect(parse(torn)).toEqual({ ids: ["a"], faults: ["torn 3"] });
    }
  });

  test("300 NUL bytes inserted at any byte cost at most the record they hit", () => {
    const text = Buffer.from(HEADER + ["a", "b", "c"].map((id) => line(id, null, "Zoë")).join(""));
    for (let at = HEADER.length; at <= text.length; at += 1) {
      const damaged = Buffer.concat([text.subarray(0, at), Buffer.alloc(300), text.subarray(at)]);
      const { ids } = parse(damaged);
      expect(ids.length).toBeGreaterThanOrEqual(2);
    }
  });

  test("random corruption of some lines never loses an untouched one", () => {
    let seed = 20260101;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 300; round += 1) {
      const intact: string[] = [];
      const lines = Array.from({ length: 12 }, (_, index) => {
        const record = Buffer.from(line(`id${index}`, null, "Zoë\n".repeat(random(4))));
        if (random(3) > 0) {
          intact.push(`id${index}`);
          return record;
        }
        // The line break stays, else the neighbour is hit as well.
        for (let hits = 1 + random(5); hits > 0; hits -= 1) {
          const at = random(record.length - 1);
          const byte = random(256);
          record[at] = byte === 0x0a ? 0 : byte;
        }
        return record;
      });
      const { ids } = parse(Buffer.concat([Buffer.from(HEADER), ...lines]));
      expect(intact.filter((id) => !ids.includes(id))).toEqual([]);
    }
  });

  test("a file of another program, with types that we do not know, comes back byte for byte", () => {
    const text = readFileSync(
      join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl"),
      "utf8",
    );
    const { header, entries, faults } = parseSession(Buffer.from(text));
    expect(faults).toEqual([]);
    expect(
      [header, ...entries].map((record) => encodeRecord(record as SessionEntry)).join(""),
    ).toBe(text);
  });

  test("an entry of version 1, without id and parent, gets the same id at every load", () => {
    const text = `{"type":"session","id":"s","cwd":"/"}\n{"type":"message","message":{"role":"user","content":"x"}}\n`;
    const first = parseSession(Buffer.from(text));
    expect(first.header?.version).toBe(1);
    expect(first.entries[0]?.id).toBe("00000002");
    expect(parseSession(Buffer.from(text))).toEqual(first);
  });
});

describe("encodeRecord", () => {
  test("a record is one line for readers that split at Unicode line ends, and holds no control character", () => {
    const text = "a\u2028b\u2029c\u0085d\re\u000bf\u000cg\u001ch\0i\u001b[2Jj\u007fk\u009b2Jl\nm";
    const record = line("a", null, text);
    expect(record.endsWith("\n")).toBe(true);
    expect(record.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    const [entry] = parseSession(Buffer.from(record)).entries;
    expect(entry).toMatchObject({ message: { content: text } });
  });

  test("a lone surrogate survives", () => {
    const [entry] = parseSession(Buffer.from(line("a", null, "x\ud800y"))).entries;
    expect(entry).toMatchObject({ message: { content: "x\ud800y" } });
  });
});

describe("SessionWriter", () => {
  // The device takes nothing, as a full disk does. Other systems than Linux have none.
  test.skipIf(!existsSync("/dev/full"))("a full disk is returned as an error, not thrown", () => {
    const writer = SessionWriter.open("/dev/full", true);
    const [record] = parseSession(Buffer.from(line("a", null))).entries;
    expect(writer.append(record as SessionEntry)).toBeInstanceOf(Error);
    expect(writer.append(record as SessionEntry)?.message).toContain("ENOSPC");
    writer.close();
    writer.close();
  });
});

/** What a cell's output becomes: parts for the model, private types, displays, bounds. */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import contract from "../../../kernel/rlm/contract.json";
import type { CellOutput, MimeBundle } from "../../../src/kernel/execution.ts";
import { joinParts, OutputCollector, type OutputParts } from "../../../src/tool/output.ts";
import { TempDir } from "../../support/temp-dir.ts";

const { mime } = contract;
const ESC = "\x1b";
const EMPTY: OutputParts = { stdout: "", stderr: "", result: "", traceback: "" };

const print = (text: string, name: "stdout" | "stderr" = "stdout"): CellOutput => ({
  kind: "stream",
  name,
  text,
});
const display = (data: MimeBundle, displayId?: string, update = false): CellOutput => ({
  kind: "display",
  data,
  update,
  ...(displayId !== undefined && { displayId }),
});
const shown = (text: string, displayId?: string, update = false): CellOutput =>
  display({ "text/plain": text }, displayId, update);
const result = (data: MimeBundle): CellOutput => ({ kind: "result", data });
const raised = (traceback: string[], ename = "E", evalue = ""): CellOutput => ({
  kind: "error",
  error: { ename, evalue, traceback },
});
const clear = (wait: boolean): CellOutput => ({ kind: "clear", wait });

/** A collector that has taken the output; nothing goes into files. */
function collect(...output: CellOutput[]): OutputCollector {
  const collector = new OutputCollector({ newFile: () => undefined });
  for (const item of output) collector.push(item);
  return collector;
}

/** Output in the order of its arrival, and the parts that are not empty. */
const CASES: Array<{ name: string; output: CellOutput[]; parts: Partial<OutputParts> }> = [
  { name: "nothing", output: [], parts: {} },
  {
    name: "both streams and a result",
    output: [print("a\n"), print("w\n", "stderr"), print("b\n"), result({ "text/plain": "3" })],
    parts: { stdout: "a\nb\n", stderr: "w\n", result: "3" },
  },
  {
    name: "a traceback with colours",
    output: [raised([`${ESC}[31mTraceback${ESC}[0m`, "ValueError: x"])],
    parts: { traceback: "Traceback\nValueError: x" },
  },
  {
    name: "an error without a traceback",
    output: [raised([], "ValueError", `${ESC}[1mbad${ESC}[0m`), raised([], "Empty")],
    parts: { traceback: "ValueError: bad\nEmpty" },
  },
  {
    name: "displays between prints, each on a line of its own",
    output: [print("a"), shown("one"), shown("two\n"), print("b")],
    parts: { stdout: "a\none\ntwo\nb" },
  },
  {
    name: "a display behind a long line without an end",
    output: [print("x".repeat(70_000)), shown("d")],
    parts: { stdout: expect.stringMatching(/x\nd\n$/) as unknown as string },
  },
  {
    name: "a display that is updated, with its last state only",
    output: [shown("0%", "d"), print("log\n"), shown("50%", "d", true), shown("100%", "d", true)],
    parts: { stdout: "log\n100%" },
  },
  {
    name: "an update of a display that an earlier cell made",
    output: [shown("done", "earlier", true)],
    parts: { stdout: "done" },
  },
  {
    name: "a clear_output at once",
    output: [
      print("gone\n"),
      shown("gone", "d"),
      result({ "text/plain": "gone" }),
      clear(false),
      print("kept\n"),
    ],
    parts: { stdout: "kept\n" },
  },
  {
    name: "a clear_output that waits for the next output",
    output: [print("1\n"), clear(true), print("2\n"), clear(true), print("3\n")],
    parts: { stdout: "3\n" },
  },
  {
    name: "a clear_output that waits in vain",
    output: [print("kept\n"), clear(true)],
    parts: { stdout: "kept\n" },
  },
  {
    name: "a clear_output in the middle of a progress line",
    output: [print("\r50%"), clear(false), print("next\n")],
    parts: { stdout: "next\n" },
  },
  {
    name: "a traceback, which clear_output spares",
    output: [raised(["Boom"]), clear(false)],
    parts: { traceback: "Boom" },
  },
  {
    name: "two results, as some kernels send",
    output: [result({ "text/plain": "1" }), result({ "text/plain": "2" })],
    parts: { result: "1\n2" },
  },
  {
    name: "a progress bar in pieces, and one on stderr",
    output: [print("\r1%"), print("\r2"), print("%\n"), print("\r10%|#", "stderr")],
    parts: { stdout: "2%\n", stderr: "10%|#" },
  },
  {
    name: "halves of surrogate pairs",
    output: [print("a\ud800b\n"), result({ "text/plain": "\udc00" }), raised(["\ud83d"])],
    parts: { stdout: "a\ufffdb\n", result: "\ufffd", traceback: "\ufffd" },
  },
];

describe("the parts of", () => {
  test.each(CASES)("$name", ({ output, parts }) => {
    expect(collect(...output).finish()).toEqual({ ...EMPTY, ...parts });
  });

  /** Bundles, and the text that a person would read. */
  const BUNDLES: Array<{ name: string; data: MimeBundle; text: string }> = [
    { name: "plain text beside HTML", data: { "text/plain": "p", "text/html": "<p>" }, text: "p" },
    {
      name: "a wrapper's name beside Markdown",
      data: { "text/plain": "<IPython.core.display.Markdown object>", "text/markdown": "**b**" },
      text: "**b**",
    },
    {
      name: "a wrapper's name alone",
      data: { "text/plain": "<IPython.core.display.SVG object>", "image/svg+xml": "<svg/>" },
      text: "<IPython.core.display.SVG object>",
    },
    { name: "HTML alone", data: { "text/html": "<b>x</b>" }, text: "<b>x</b>" },
    { name: "a blank display", data: { "text/plain": "", "text/html": "<pre> </pre>" }, text: "" },
    {
      name: "an empty plain text beside HTML with content",
      data: { "text/plain": "", "text/html": "<p>x</p>" },
      text: "<p>x</p>",
    },
    { name: "JSON alone", data: { "application/json": { x: "nan" } }, text: '{\n  "x": "nan"\n}' },
    { name: "text in lines", data: { "text/plain": ["a\n", "b"] }, text: "a\nb" },
    { name: "LaTeX alone", data: { "text/latex": "$x$" }, text: "$x$" },
    { name: "nothing", data: {}, text: "" },
    { name: "something unreadable", data: { "application/x-thing": 1 }, text: "" },
    { name: "escape sequences", data: { "text/plain": `${ESC}[1mbold${ESC}[0m` }, text: "bold" },
  ];
  test.each(BUNDLES)("a bundle of $name", ({ data, text }) => {
    expect(collect(result(data)).finish().result).toBe(text);
    expect(collect(display(data)).finish().stdout).toBe(text && `${text}\n`);
  });
});

test("a display that has its image in several forms is one image", async () => {
  const pixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/eL9VNwAAAABJRU5ErkJggg==";
  const data = { "text/plain": "<Image>", "image/jpeg": "eA==", "image/png": pixel };
  const { blocks, notes } = await collect(display(data)).images.prepare();
  expect(blocks).toEqual([{ type: "image", data: pixel, mimeType: "image/png" }]);
  expect(notes).toEqual([]);
});

describe("private types", () => {
  const diff = { path: "/f", old_str: "a", new_str: "b", start_line: 3 };

  test("are taken out of the text, in order", () => {
    const collector = collect(
      display({ [mime.diff]: diff }),
      display({ [mime.diff]: { path: "/g", old_str: "", new_str: "x" } }),
      display({ [mime.agent_message]: { id: "m1" } }),
      display({ [mime.attachment]: { mime_type: "text/csv", data: "YQ==", path: "/t.csv" } }),
    );
    expect(collector.diffs).toEqual([diff, { path: "/g", old_str: "", new_str: "x" }]);
    expect(collector.sentAgentMessages).toEqual([{ id: "m1" }]);
    expect(collector.attachments).toEqual([
      { mime_type: "text/csv", data: "YQ==", path: "/t.csv" },
    ]);
    expect(collector.problems).toEqual([]);
    expect(collector.finish()).toEqual(EMPTY);
  });

  test("survive a clear_output, since what was done is done", () => {
    const collector = collect(display({ [mime.diff]: diff }), clear(false));
    expect(collector.diffs).toEqual([diff]);
  });

  test.each([null, 5, {}, { path: "/f" }, { path: 1, old_str: "", new_str: "" }])(
    "are ignored as a diff when malformed: %j",
    (value) => {
      expect(collect(display({ [mime.diff]: value })).diffs).toEqual([]);
    },
  );

  const LIMIT = contract.limits.attachment_base64_chars;
  test("an attachment of 10,000,000 characters is taken, one more makes the cell fail", () => {
    const attach = (chars: number) =>
      collect(display({ [mime.attachment]: { mime_type: "text/plain", data: "A".repeat(chars) } }));
    expect(attach(LIMIT).attachments).toHaveLength(1);
    const over = attach(LIMIT + 1);
    expect(over.attachments).toEqual([]);
    expect(over.finish().traceback).toBe(
      "An attachment of 10000001 base64 characters is over the limit of 10000000; make it smaller.",
    );
  });

  test("a malformed attachment makes the cell fail too", () => {
    expect(collect(display({ [mime.attachment]: {} })).problems).toEqual([
      "An attachment needs mime_type and data.",
    ]);
  });
});

describe("bounds", () => {
  test("30,000 displays and 10,000 updatable ones stay within the cap, and what is missing is counted", () => {
    const collector = new OutputCollector({ newFile: () => undefined });
    for (let index = 0; index < 30_000; index += 1) collector.push(shown(`display ${index}`));
    for (let index = 0; index < 10_000; index += 1)
      collector.push(shown("u".repeat(1_000), `d${index}`));
    const { stdout } = collector.finish();
    expect(stdout.length).toBeLessThan(2 * 66_000);
    expect(stdout).toStartWith("display 0\n");
    expect(stdout).toContain("display 29999\n");
    expect(stdout).toEndWith("[9800 more updatable displays left out]");
  });

  test("each stream that is cut names a file of its own, with all of it", () => {
    using dir = new TempDir();
    const asked: string[] = [];
    const collector = new OutputCollector({
      newFile: (stream) => {
        asked.push(stream);
        return dir.join(stream);
      },
    });
    const big = "y".repeat(100_000);
    collector.push(print(big));
    collector.push(print(big, "stderr"));
    collector.push(result({ "text/plain": big }));
    collector.push(raised([big, `ValueError: ${big}`]));
    collector.push(shown(big, "d"));
    collector.push(shown(`${big}!`, "d", true));
    const parts = collector.finish();
    expect(asked.sort()).toEqual([
      "display",
      "displays",
      "result",
      "stderr",
      "stdout",
      "traceback",
    ]);
    for (const [part, stream] of Object.entries({ ...parts, display: parts.stdout })) {
      expect(part.length).toBeLessThan(140_000);
      expect(stream).toContain("[... output truncated at 65536 chars ...]");
    }
    expect(parts.traceback).toContain(`full text: ${dir.join("traceback")}`);
    expect(readFileSync(dir.join("stdout"), "utf8")).toBe(big);
    expect(readFileSync(dir.join("traceback"), "utf8")).toBe(`${big}\nValueError: ${big}`);
    expect(readFileSync(dir.join("display"), "utf8")).toBe(`${big}${big}!`);
  });

  test("the useful end of a long output is always there", () => {
    const lines = Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join("");
    const { stdout, stderr } = collect(print(lines), print("FINAL-ERROR\n", "stderr")).finish();
    expect(stdout).toEndWith("\n199999\n");
    expect(stderr).toBe("FINAL-ERROR\n");
  });
});

describe("what is added at the end", () => {
  test("pages go behind stdout, on lines of their own", () => {
    const collector = collect(print("open"));
    collector.pushPage({ "text/plain": `${ESC}[31mSignature:${ESC}[0m len(obj)` });
    collector.pushPage({ "text/plain": "second\n" });
    expect(collector.finish().stdout).toBe("open\nSignature: len(obj)\nsecond\n");
  });

  test("an error of the reply counts only when none came as a message", () => {
    const error = { ename: "E", evalue: "reply", traceback: [] };
    const none = collect();
    none.pushError(error);
    expect(none.finish().traceback).toBe("E: reply");
    const some = collect(raised(["message"]));
    some.pushError(error);
    expect(some.finish().traceback).toBe("message");
  });
});

test("a watching terminal gets finished lines, clean, as they come", () => {
  const live: string[] = [];
  const collector = new OutputCollector({
    newFile: () => undefined,
    live: (stream, text) => live.push(`${stream}:${text}`),
  });
  collector.push(print(`${ESC}[31mone${ESC}[0m\ntw`));
  collector.push(print("\r5%", "stderr"));
  collector.push(print("o\n"));
  collector.push(shown("shown"));
  collector.finish();
  expect(live).toEqual(["stdout:one\n", "stdout:two\n", "stdout:shown\n", "stderr:5%"]);
});

test("parts are joined by exactly one line break", () => {
  expect(joinParts(["", "a\n", "b", "", "c\n\n", "d\n"])).toBe("a\nb\nc\n\nd\n");
  expect(joinParts(["", ""])).toBe("");
});

import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bunFailures, lastLines, pythonFailures } from "../../../scripts/lib/failures.ts";

const folder = mkdtempSync(join(tmpdir(), "prime-agent-test-failures-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a command prints, run in the folder of this test. */
async function printed(...command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const texts = [new Response(child.stdout).text(), new Response(child.stderr).text()];
  expect(await child.exited).not.toBe(0);
  return (await Promise.all(texts)).join("");
}

test("bun test: each failed test once, with its file and what it said, and no other", async () => {
  const body = (name: string, fails: boolean) =>
    `test("${name}", () => { console.error("said by ${name}"); expect(1).toBe(${fails ? 2 : 1}); });\n`;
  const head = 'import { expect, test } from "bun:test";\n';
  writeFileSync(join(folder, "a.test.ts"), head + body("good", false) + body("bad", true));
  writeFileSync(join(folder, "b.test.ts"), head + body("worse", true) + body("fine", false));
  const failures = bunFailures(await printed(process.execPath, "test"));
  expect(failures).toHaveLength(2);
  for (const [file, name] of [
    ["a", "bad"],
    ["b", "worse"],
  ]) {
    const text = failures.find((failure) => failure.includes(`(fail) ${name}`));
    expect(text).toStartWith(`${file}.test.ts:\n`);
    expect(text).toContain(`said by ${name}`);
    expect(text).toContain("Expected: 2");
    expect(text).not.toMatch(/^said by (good|fine)/m);
  }
});

test("unittest: each failure and error with its traceback", async () => {
  writeFileSync(
    join(folder, "test_a.py"),
    [
      "import unittest",
      "class A(unittest.TestCase):",
      "    def test_good(self): print('=' * 70)",
      "    def test_bad(self): self.assertEqual(1, 2)",
      "    def test_error(self): raise OSError('no disk')",
    ].join("\n"),
  );
  const failures = pythonFailures(await printed("python3", "-m", "unittest", "discover"));
  expect(failures).toHaveLength(2);
  expect(failures[1]).toMatch(/^FAIL: test_bad[^]*AssertionError: 1 != 2$/);
  expect(failures[0]).toMatch(/^ERROR: test_error[^]*OSError: no disk$/);
});

test("a long text keeps its end, and says how much is left out", () => {
  const text = lastLines(Array.from({ length: 100 }, (_, index) => `line ${index}`).join("\n"));
  expect(text).toStartWith("... 40 lines\nline 40\n");
  expect(text).toEndWith("\nline 99");
});

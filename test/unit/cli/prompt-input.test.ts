/** The prompt from words and files; what stdin adds is tested on the compiled program. */

import { describe, expect, test } from "bun:test";
import { readPrompt } from "../../../src/cli/prompt-input.ts";
import { UsageError } from "../../../src/errors.ts";
import { TempDir } from "../../support/temp-dir.ts";

describe("readPrompt", () => {
  test.each([
    [["fix", "it"], "fix it"],
    [["  keep  spaces "], "  keep  spaces "],
    [["a\nb"], "a\nb"],
  ])("joins the words %j by a space", async (words, text) => {
    expect(await readPrompt({ words, stdin: "ignore" })).toEqual({ text });
  });

  test("takes a file before the words, as it is", async () => {
    using dir = new TempDir();
    const file = dir.write("prompt.txt", "from the file\n");
    expect(await readPrompt({ words: ["words"], file, stdin: "ignore" })).toEqual({
      text: "from the file\n",
    });
  });

  test.each([[[]], [[""]], [["  ", "\n"]]])("refuses the empty prompt %j", async (words) => {
    await expect(readPrompt({ words, stdin: "ignore" })).rejects.toThrow(UsageError);
  });

  test("names a prompt file that can't be read", async () => {
    const reading = readPrompt({ words: [], file: "/no/such/file", stdin: "ignore" });
    await expect(reading).rejects.toThrow("the prompt file /no/such/file can't be read");
  });
});

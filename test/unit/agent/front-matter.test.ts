import { describe, expect, test } from "bun:test";
import { parseFrontMatter } from "../../../src/agent/front-matter.ts";

describe("parseFrontMatter", () => {
  const valid: Array<[name: string, text: string, fields: Record<string, unknown>, body: string]> =
    [
      [
        "plain values",
        "---\nname: a\ndescription: b c\n---\nbody\n",
        { name: "a", description: "b c" },
        "body\n",
      ],
      [
        "quotes, comments and escapes",
        `---\n# note\nname: "a: b" # trailing\ndescription: 'it''s'\n---\n`,
        { name: "a: b", description: "it's" },
        "",
      ],
      [
        "a literal block",
        "---\ndescription: |\n  one\n  two: three\n---\n",
        { description: "one\ntwo: three\n" },
        "",
      ],
      [
        "a folded block",
        "---\ndescription: >-\n  one\n  two\n---\n",
        { description: "one two" },
        "",
      ],
      [
        "a value continued on the next line",
        "---\ndescription: one\n  two\n---\n",
        { description: "one two" },
        "",
      ],
      [
        "nested fields",
        "---\nmetadata:\n  tags: [a, b]\n---\n",
        { metadata: { tags: ["a", "b"] } },
        "",
      ],
      ["CRLF and a byte order mark", "\uFEFF---\r\nname: a\r\n---\r\nbody", { name: "a" }, "body"],
      ["three hyphens in the body", "---\nname: a\n---\nx\n---\ny", { name: "a" }, "x\n---\ny"],
      ["true in the YAML sense only", "---\na: true\nb: yes\n---\n", { a: true, b: "yes" }, ""],
    ];
  test.each(valid)("reads %s", (_name, text, fields, body) => {
    expect(parseFrontMatter(text)).toEqual({ fields, body });
  });

  const invalid: Array<[name: string, text: string, problem: string]> = [
    ["an empty file", "", "it has no front matter"],
    ["a file that begins with text", "# Title\n---\nname: a\n---\n", "it has no front matter"],
    ["a block without an end", "---\nname: a\n", "its front matter has no closing ---"],
    ["an empty block", "---\n---\n", "its front matter holds no fields"],
    ["a list", "---\n- a\n---\n", "its front matter holds no fields"],
    ["a bare text", "---\nhello\n---\n", "its front matter holds no fields"],
    [
      "an unquoted colon",
      "---\nname: a\nlicense: MIT\ndescription: Use when: x\n---\n",
      "not valid YAML at line 4",
    ],
    ["an open bracket", "---\nname: [a\n---\n", "not valid YAML at line 2"],
    ["an alias bomb", `---\n${bomb()}\n---\n`, "not valid YAML at line"],
  ];
  test.each(invalid)("refuses %s", (_name, text, problem) => {
    expect(parseFrontMatter(text)).toEqual({ problem: expect.stringContaining(problem) });
  });
});

/** Ten levels of nine references each. */
function bomb(): string {
  const names = [..."abcdefghij"];
  return names
    .map(
      (name, index) =>
        `${name}: &${name} [${Array(9)
          .fill(index ? `*${names[index - 1]}` : "x")
          .join(",")}]`,
    )
    .join("\n");
}

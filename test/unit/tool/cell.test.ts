/** Shell settings apply to shell cells, and nothing else is touched. */

import { describe, expect, test } from "bun:test";
import { parseIpythonBashCell, rewriteCell } from "../../../src/tool/cell.ts";

const BASH: Array<{ code: string; lead: string; args: string; lineBreak: string; body: string }> = [
  { code: "%%bash\necho a\n", lead: "", args: "", lineBreak: "\n", body: "echo a\n" },
  { code: "%%bash", lead: "", args: "", lineBreak: "", body: "" },
  { code: "%%bash --timeout 5\nx", lead: "", args: " --timeout 5", lineBreak: "\n", body: "x" },
  {
    code: "\n \n\t%%bash\r\nif x\r\nfi\r\n",
    lead: "\n \n\t",
    args: "",
    lineBreak: "\r\n",
    body: "if x\r\nfi\r\n",
  },
  { code: "%%bash \n  indented\n", lead: "", args: " ", lineBreak: "\n", body: "  indented\n" },
];
const OTHERS = [
  "",
  "1 + 1",
  "%%bashful\nx",
  "# %%bash\n%%bash\nx",
  "x = 1\n%%bash",
  "%bash",
  "%%sh\nx",
  "%%script bash\nx",
  "a %%bash\nx",
];

describe("a shell cell", () => {
  const quoted = BASH.map((row) => [JSON.stringify(row.code), row] as const);
  test.each(quoted)("%s is taken apart, and the parts make the whole", (_, { code, ...parts }) => {
    expect(parseIpythonBashCell(code)).toEqual(parts);
    expect(`${parts.lead}%%bash${parts.args}${parts.lineBreak}${parts.body}`).toBe(code);
    expect(rewriteCell(code, {})).toBe(code);
  });

  test.each(OTHERS)("is not %p, which passes unchanged", (code) => {
    expect(parseIpythonBashCell(code)).toBeUndefined();
    expect(rewriteCell(code, { shellPath: "/bin/zsh", commandPrefix: "set -e" })).toBe(code);
  });
});

describe("settings", () => {
  const both = { shellPath: "/bin/zsh", commandPrefix: "set -e" };
  const CASES: Array<{ name: string; settings: object; code: string; rewritten: string }> = [
    {
      name: "a shell",
      settings: { shellPath: "/bin/zsh" },
      code: "%%bash\nx\n",
      rewritten: "%%script /bin/zsh\nx\n",
    },
    {
      name: "a shell with a space",
      settings: { shellPath: "/my shells/z'sh" },
      code: "%%bash\nx",
      rewritten: `%%script '/my shells/z'"'"'sh'\nx`,
    },
    {
      name: "a shell, where the magic has arguments",
      settings: { shellPath: "/bin/zsh" },
      code: "%%bash --timeout 5\nx",
      rewritten: "%%bash --timeout 5\nx",
    },
    {
      name: "a prefix",
      settings: { commandPrefix: "set -e" },
      code: "%%bash\nx",
      rewritten: "%%bash\nset -e\nx",
    },
    {
      name: "a prefix, where the magic has arguments",
      settings: both,
      code: "%%bash --timeout 5\nx",
      rewritten: "%%bash --timeout 5\nset -e\nx",
    },
    {
      name: "both, behind blank lines and indentation, with the cell's line ends",
      settings: both,
      code: "\n  %%bash\r\n  x\r\n",
      rewritten: "\n  %%script /bin/zsh\r\n  set -e\r\n  x\r\n",
    },
    {
      name: "both, for a cell without a body",
      settings: both,
      code: "%%bash",
      rewritten: "%%script /bin/zsh\nset -e\n",
    },
    {
      name: "empty ones",
      settings: { shellPath: "", commandPrefix: "" },
      code: "%%bash\nx",
      rewritten: "%%bash\nx",
    },
  ];
  test.each(CASES)("apply: $name", ({ settings, code, rewritten }) => {
    expect(rewriteCell(code, settings)).toBe(rewritten);
  });
});

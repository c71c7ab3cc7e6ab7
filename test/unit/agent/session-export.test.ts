import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { renderHtml } from "../../../src/agent/export-html.ts";
import { renderMarkdown } from "../../../src/agent/export-markdown.ts";
import type { EntryDraft } from "../../../src/agent/session-entry.ts";
import { exportConversation } from "../../../src/agent/session-export.ts";
import { readConversation } from "../../../src/agent/session-store.ts";
import type { ToolCallBlock } from "../../../src/message.ts";
import { assistant, result, user } from "../../support/transcript.ts";

/** A conversation of the given entries. */
function conversation(...drafts: EntryDraft[]) {
  const timestamp = "2026-01-01T00:00:00.000Z";
  return exportConversation({
    header: { type: "session", version: 3, id: "abc", timestamp, cwd: "/w" },
    entries: drafts.map((draft, index) => ({
      ...draft,
      id: `${index}`,
      parentId: null,
      timestamp,
    })),
  });
}

const say = (message: Extract<EntryDraft, { type: "message" }>["message"]): EntryDraft => ({
  type: "message",
  message,
});
const code = (source: string): ToolCallBlock => ({
  type: "toolCall",
  id: "a",
  name: "ipython",
  arguments: { code: source },
});

describe("renderMarkdown", () => {
  test("shows the whole conversation, compacted parts included", () => {
    const path = join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl");
    expect(renderMarkdown(exportConversation(readConversation(path)))).toBe(`# Count files

- Session: \`0f6f6d3c-7d54-4a1c-9d0e-2f3a4b5c6d7e\`
- Folder: \`/home/ada/engine\`
- Started: \`2026-01-05T10:00:00.000Z\`
- Models: \`anthropic/claude-sonnet-4-5\`
- Tokens: \`157\`
- Cost: \`$0.4000\`

## User

Count the files

## Assistant claude-sonnet-4-5

> List them.

Looking.

\`\`\`python
len(files)
\`\`\`

## Output

\`\`\`text
12
\`\`\`

*Model: openai/gpt-5*

*Effort: high*

## User

I ran \`git status\`:

clean

*The conversation so far was summarised*

Counted twelve files.

*Another branch was left*

Tried recursion.

*Notice*

The kernel was restarted.
`);
  });

  test("a fence is longer than the backticks inside it", () => {
    const markdown = renderMarkdown(conversation(say(result("a", "x\n````\ny"))));
    expect(markdown).toContain("`````text\nx\n````\ny\n`````");
  });

  test("a shell cell is marked as such, an image is named, a failure is shown", () => {
    const reply = {
      ...assistant(""),
      content: [code("%%bash\nls")],
      stopReason: "error" as const,
      errorMessage: "boom",
    };
    const image = {
      ...result("a"),
      isError: true,
      content: [{ type: "image" as const, mimeType: "image/png", data: "AA==" }],
    };
    const markdown = renderMarkdown(conversation(say(reply), say(image)));
    expect(markdown).toContain("```bash\n%%bash\nls\n```\n\nerror: boom");
    expect(markdown).toContain("## Output (error)\n\n*(image, image/png)*");
  });

  test("holds no control character that a terminal would obey", () => {
    const markdown = renderMarkdown(
      conversation(
        { type: "session_info", name: "\u001b]0;title\u0007" },
        say(user("a\u001b[2Jb")),
        say(result("a", "\u009b1m\0")),
      ),
    );
    expect(markdown).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  });
});

describe("renderHtml", () => {
  const hostile = `"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;`;

  test("escapes everything that was said, wherever it was said", () => {
    const html = renderHtml(
      conversation(
        { type: "session_info", name: hostile },
        { type: "model_change", provider: hostile, modelId: hostile },
        { type: "compaction", summary: hostile, firstKeptEntryId: "", tokensBefore: 1 },
        { type: "custom_message", customType: "x", content: hostile, display: true },
        say(user(hostile)),
        say({
          ...assistant(hostile),
          model: hostile,
          content: [code(hostile), { type: "thinking", thinking: hostile }],
        }),
        say(result("a", hostile)),
        say({
          ...result("a"),
          content: [
            { type: "image", mimeType: hostile, data: hostile },
            { type: "image", mimeType: "image/png", data: hostile },
          ],
        }),
      ),
    );
    expect(html).not.toContain("<script");
    expect(html).not.toContain("<img src=x");
    expect(html.match(/&lt;script&gt;/g)?.length).toBeGreaterThanOrEqual(10);
  });

  test("embeds pictures and needs nothing from elsewhere", () => {
    const html = renderHtml(
      conversation(
        say({
          ...result("a"),
          content: [{ type: "image", mimeType: "image/png", data: "iVBORw0=" }],
        }),
      ),
    );
    expect(html).toContain('<img alt="" src="data:image/png;base64,iVBORw0=">');
    expect(html).toContain("default-src 'none'");
    expect(html).not.toMatch(/https?:\/\//);
  });

  test("leaves out messages that are not for people", () => {
    const html = renderHtml(
      conversation({
        type: "custom_message",
        customType: "x",
        content: "secret hint",
        display: false,
      }),
    );
    expect(html).not.toContain("secret hint");
  });
});

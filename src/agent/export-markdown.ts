/** A conversation as Markdown, for reading and for pasting into a report. */

import type { ConversationExport, ExportPart, ExportSection } from "./session-export.ts";

/** Renders to Markdown that ends with a line break. Images are named, not embedded. */
export function renderMarkdown(conversation: ConversationExport): string {
  const facts = conversation.facts.map(([label, value]) => `- ${label}: \`${value}\``).join("\n");
  const blocks = [`# ${conversation.title}`, facts, ...conversation.sections.map(renderSection)];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function renderSection(section: ExportSection): string {
  const heading = section.kind === "notice" ? `*${section.title}*` : `## ${section.title}`;
  return [heading, ...section.parts.map(renderPart)].join("\n\n");
}

function renderPart(part: ExportPart): string {
  switch (part.kind) {
    case "text":
      return part.text.trim();
    case "thinking":
      return part.text.trim().replaceAll(/^/gm, "> ");
    case "code":
      return fenced(part.text, part.language);
    case "output":
      return fenced(part.text, "text");
    case "image":
      return `*(image, ${part.mimeType})*`;
  }
}

/** A fence is longer than any run of backticks inside, or it would end there. */
function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

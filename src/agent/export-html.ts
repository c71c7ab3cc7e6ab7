/** A conversation as one HTML page that needs nothing else: no script, no font, no network. */

import stylesheet from "./export-style.txt" with { type: "text" };
import type { ConversationExport, ExportPart, ExportSection } from "./session-export.ts";

/** Renders a whole page. Everything that was said is escaped; the page forbids itself scripts and requests. */
export function renderHtml(conversation: ConversationExport): string {
  const title = escapeHtml(conversation.title);
  const facts = conversation.facts
    .map(([label, value]) => `<dt>${escapeHtml(label)}</dt><dd>${escapeHtml(value)}</dd>`)
    .join("");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>${title}</title>
<style>
${stylesheet}</style>
</head>
<body>
<h1>${title}</h1>
<dl>${facts}</dl>
${conversation.sections.map(renderSection).join("\n")}
</body>
</html>
`;
}

function renderSection(section: ExportSection): string {
  const parts = section.parts.map(renderPart).join("\n");
  return `<section class="${section.kind}">\n<h2>${escapeHtml(section.title)}</h2>\n${parts}\n</section>`;
}

function renderPart(part: ExportPart): string {
  switch (part.kind) {
    case "text":
      return `<div class="text">${escapeHtml(part.text)}</div>`;
    case "thinking":
      return `<details><summary>Thinking</summary><div class="text">${escapeHtml(part.text)}</div></details>`;
    case "code":
    case "output":
      return `<pre class="${part.kind}">${escapeHtml(part.text)}</pre>`;
    case "image":
      return SAFE_IMAGE.test(part.mimeType)
        ? `<img alt="" src="data:${part.mimeType};base64,${escapeHtml(part.data)}">`
        : `<div class="text">(image, ${escapeHtml(part.mimeType)})</div>`;
  }
}

/** Pixels only: an SVG could bring links of its own. */
const SAFE_IMAGE = /^image\/(?:png|jpeg|gif|webp)$/;

function escapeHtml(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

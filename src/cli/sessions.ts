/** The `sessions` command: what is saved, and what can be done with it. */

import { renderHtml } from "../agent/export-html.ts";
import { renderMarkdown } from "../agent/export-markdown.ts";
import { exportConversation } from "../agent/session-export.ts";
import {
  deleteSession,
  findSession,
  listSessions,
  readConversation,
} from "../agent/session-store.ts";
import type { SessionSummary } from "../agent/session-summary.ts";
import { UsageError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import { firstLine, printable } from "../printable.ts";

/** What the command line says besides the words. */
export interface SessionsOptions {
  /** The program's folder. */
  home: string;
  cwd: string;
  /** `--all`: sessions of every folder, not only of this one. */
  all: boolean;
  /** `--format` of an export; `undefined` means Markdown. */
  format: string | undefined;
  /** `list` as a JSON array instead of a table. */
  json: boolean;
}

/**
 * Runs `sessions ACTION [SESSION…]` and returns what goes to stdout. No action means `list`.
 * Throws {@link UsageError}, and what opening or deleting a session throws.
 */
export function runSessions(words: readonly string[], options: SessionsOptions): string {
  const [action = "list", ...queries] = words;
  switch (action) {
    case "list":
      return listText(options);
    case "show":
      return exported(only(queries, action), { ...options, format: "markdown" });
    case "export":
      return exported(only(queries, action), options);
    case "path":
      return `${find(only(queries, action), options)}\n`;
    case "rm":
      return removed(queries, options);
    default: {
      const [match] = nearest(action, ACTIONS);
      throw new UsageError(`there is no "sessions ${printable(action)}"`, {
        hint: match ? `Did you mean ${match}?` : `The actions are ${ACTIONS.join(", ")}.`,
      });
    }
  }
}

const ACTIONS = ["list", "show", "export", "path", "rm"];

const TITLE_WIDTH = 60;

/** The fewest characters of an id that are shown. */
const SHORT_ID = 8;

function listText({ home, cwd, all, json }: SessionsOptions): string {
  const sessions = listSessions(home, all ? {} : { cwd });
  if (json) return `${JSON.stringify(sessions.map(jsonSummary), null, 2)}\n`;
  if (sessions.length === 0) {
    return all
      ? "No sessions are saved.\n"
      : "No sessions of this folder are saved; --all lists those of every folder.\n";
  }
  const width = idWidth(sessions);
  return sessions.map((session) => listLine(session, width, all)).join("");
}

function jsonSummary(session: SessionSummary): object {
  return {
    id: session.id,
    name: session.name ?? null,
    path: session.path,
    cwd: session.cwd,
    first_prompt: session.firstPrompt ?? null,
    message_count: session.messageCount,
    created_at: session.createdAt,
    modified_at: session.modifiedAt,
    bytes: session.bytes,
  };
}

function listLine(session: SessionSummary, width: number, showFolder: boolean): string {
  const title = firstLine(session.name ?? session.firstPrompt ?? "", TITLE_WIDTH);
  const columns = [
    session.id.slice(0, width).padEnd(width),
    localTime(session.modifiedAt),
    `${session.messageCount} messages`.padStart(13),
    title,
  ];
  if (showFolder) columns.push(`(${printable(session.cwd)})`);
  return `${columns.join("  ")}\n`;
}

/** How much of the ids must be shown for each to be found again by what is shown. */
function idWidth(sessions: readonly SessionSummary[]): number {
  let width = SHORT_ID;
  while (new Set(sessions.map(({ id }) => id.slice(0, width))).size < sessions.length) width += 1;
  return width;
}

function localTime(date: Date): string {
  const pad = (value: number) => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}`;
}

function exported(query: string, options: SessionsOptions): string {
  const render = RENDERERS[options.format ?? "markdown"];
  if (!render) {
    throw new UsageError(`a session can't be exported as ${printable(options.format ?? "")}`, {
      hint: "The formats are markdown and html.",
    });
  }
  return render(exportConversation(readConversation(find(query, options))));
}

const RENDERERS: Readonly<Record<string, typeof renderMarkdown>> = {
  markdown: renderMarkdown,
  md: renderMarkdown,
  html: renderHtml,
};

/** Finds all before it deletes any, so that a mistyped id costs nothing. */
function removed(queries: readonly string[], options: SessionsOptions): string {
  if (queries.length === 0) throw missingSession("rm");
  const paths = queries.map((query) => find(query, options));
  for (const path of paths) deleteSession(path);
  return paths.map((path) => `removed ${path}\n`).join("");
}

function only(queries: readonly string[], action: string): string {
  const [query] = queries;
  if (query === undefined) throw missingSession(action);
  if (queries.length > 1) throw new UsageError(`sessions ${action} takes one session`);
  return query;
}

function missingSession(action: string): UsageError {
  return new UsageError(`sessions ${action} needs a session`, {
    hint: "Give an id, the beginning of one, a name or a file; `sessions list` shows them.",
  });
}

function find(query: string, { home, cwd }: SessionsOptions): string {
  return findSession(home, query, cwd);
}

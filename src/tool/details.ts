/** What a tool call leaves for rendering, sessions and JSON events; the model never sees it. */

import contract from "../../kernel/rlm/contract.json";

/** One replacement that a cell made in a file. */
export interface FileDiff {
  path: string;
  old_str: string;
  new_str: string;
  /** 1-based line of the replacement; absent when unknown. */
  start_line?: number;
}

/** A file that a cell attached; `data` is base64. */
export interface Attachment {
  mime_type: string;
  data: string;
  path?: string;
}

/** Details of one `ipython` call. */
export interface IpythonToolDetails {
  durationMs: number;
  status: "ok" | "error" | "aborted" | "starting";
  /** Why it was aborted, in the words that the model gets. */
  abortReason?: string;
  errorEname?: string;
  stdout: string;
  stderr: string;
  result?: string;
  diffs: FileDiff[];
  attachments: Array<Omit<Attachment, "data"> & { chars: number }>;
  sentAgentMessages: unknown[];
  kernelRestarted: boolean;
  /** What else the model is told: doubts about the result, what could not be shown, late output of earlier cells. */
  notes: string[];
  error?: { ename: string; evalue: string; traceback: string[] };
}

/** A value of the private diff type, or undefined when it is malformed. */
export function parseDiff(value: unknown): FileDiff | undefined {
  const diff = value as Partial<FileDiff> | null;
  if (
    typeof diff?.path !== "string" ||
    typeof diff.old_str !== "string" ||
    typeof diff.new_str !== "string"
  ) {
    return undefined;
  }
  return {
    path: diff.path,
    old_str: diff.old_str,
    new_str: diff.new_str,
    ...(typeof diff.start_line === "number" && { start_line: diff.start_line }),
  };
}

/** A value of the private attachment type, or the reason why it can't be used. */
export function parseAttachment(value: unknown): Attachment | string {
  const attachment = value as Partial<Attachment> | null;
  if (typeof attachment?.mime_type !== "string" || typeof attachment.data !== "string") {
    return "An attachment needs mime_type and data.";
  }
  const limit = contract.limits.attachment_base64_chars;
  if (attachment.data.length > limit) {
    return `An attachment of ${attachment.data.length} base64 characters is over the limit of ${limit}; make it smaller.`;
  }
  return {
    mime_type: attachment.mime_type,
    data: attachment.data,
    ...(typeof attachment.path === "string" && { path: attachment.path }),
  };
}

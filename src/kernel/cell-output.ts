/** What a cell says on iopub, as values; accepts whatever a kernel sends. */

import type { JupyterMessage } from "../jupyter/message.ts";

/** A MIME bundle: media type to data (text as strings, JSON types as objects). */
export type MimeBundle = Record<string, unknown>;

/** One piece of output of a cell, in the order of its arrival. */
export type CellOutput =
  | { kind: "stream"; name: "stdout" | "stderr"; text: string }
  | { kind: "display"; data: MimeBundle; displayId?: string; update: boolean }
  | { kind: "result"; data: MimeBundle; displayId?: string }
  | { kind: "error"; error: CellError }
  | { kind: "clear"; wait: boolean };

/** A Python exception as the kernel reports it; `traceback` may hold terminal colours. */
export interface CellError {
  ename: string;
  evalue: string;
  traceback: string[];
}

/** The output that an iopub message carries, or undefined when it carries none. */
export function outputOf(message: JupyterMessage): CellOutput | undefined {
  const content = message.content as Record<string, unknown>;
  const transient = content["transient"] as { display_id?: unknown } | null | undefined;
  const displayId =
    typeof transient?.display_id === "string" ? { displayId: transient.display_id } : {};
  switch (message.header.msg_type) {
    case "stream":
      return {
        kind: "stream",
        name: content["name"] === "stderr" ? "stderr" : "stdout",
        text: String(content["text"] ?? ""),
      };
    case "display_data":
    case "update_display_data":
      return {
        kind: "display",
        data: bundleOf(content["data"]),
        ...displayId,
        update: message.header.msg_type === "update_display_data",
      };
    case "execute_result":
      return { kind: "result", data: bundleOf(content["data"]), ...displayId };
    case "error":
      return { kind: "error", error: errorOf(content) ?? unnamedError(content) };
    case "clear_output":
      return { kind: "clear", wait: content["wait"] === true };
    default:
      return undefined;
  }
}

/** The exception in the content of a reply or an `error` message; undefined when it names none. */
export function errorOf(content: Record<string, unknown>): CellError | undefined {
  if (typeof content["ename"] !== "string") return undefined;
  const traceback = Array.isArray(content["traceback"]) ? content["traceback"].map(String) : [];
  return { ename: content["ename"], evalue: String(content["evalue"] ?? ""), traceback };
}

/** Stands for a failure that the kernel does not name (xeus: cells that it aborts; tslab: "abort"). */
export function unnamedError(content: Record<string, unknown>): CellError {
  const status = content["status"];
  const evalue =
    content["evalue"] ??
    (status === undefined
      ? "the kernel did not say how the cell ended"
      : `the kernel reported the status "${String(status)}" and nothing else`);
  return { ename: "KernelError", evalue: String(evalue), traceback: [] };
}

/** What the pager payloads of a reply would show. */
export function pagesOf(payload: unknown): MimeBundle[] {
  if (!Array.isArray(payload)) return [];
  return payload
    .filter((item) => item?.source === "page")
    .map((item) => bundleOf(item.data ?? { "text/plain": item.text }));
}

function bundleOf(value: unknown): MimeBundle {
  return typeof value === "object" && value !== null ? (value as MimeBundle) : {};
}

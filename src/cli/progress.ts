/**
 * A run as plain lines: what happens, as it happens. No cursor movement, no
 * spinner, no carriage return, and no control character of anybody else.
 */

import pc from "picocolors";
import type { AgentEvent } from "../agent/events.ts";
import type { IpythonToolDetails } from "../app-kernel.ts";
import type { ToolResultMessage } from "../message.ts";
import { printable } from "../printable.ts";
import { codeLines, diffLines, imageLine } from "./cell-lines.ts";

/** Silence after which a line says that the run is alive. */
export const HEARTBEAT_MS = 30_000;

/** Settings of {@link ProgressLines}. */
export interface ProgressOptions {
  write(text: string): void;
  color: boolean;
  /** Takes secrets out of a text. */
  redact(text: string): string;
  /** `full`: cells with all of their code, diffs with their lines (of the root; sub-agents stay brief). */
  detail?: "brief" | "full";
}

/** See the head of this file. */
export class ProgressLines {
  readonly #options: ProgressOptions;
  readonly #color: ReturnType<typeof pc.createColors>;
  #started = performance.now();
  #activity = "starting";
  #lineOpen = false;
  /** Whose output the open line is: the start of its lines. */
  #speaker = "";
  #timer: ReturnType<typeof setInterval> | undefined;
  #lastWrite = performance.now();

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#color = pc.createColors(options.color);
  }

  /** Starts the heartbeat, counting from now; {@link stop} ends it. `onBeat` hears each one. */
  startHeartbeat(onBeat?: (elapsedMs: number, activity: string) => void): void {
    this.stop();
    this.#started = performance.now();
    this.#lastWrite = this.#started;
    this.#timer = setInterval(() => {
      if (performance.now() - this.#lastWrite < HEARTBEAT_MS) return;
      const elapsedMs = Math.round(performance.now() - this.#started);
      this.line(this.#color.dim(`… still ${this.#activity} after ${formatDuration(elapsedMs)}`));
      onBeat?.(elapsedMs, this.#activity);
    }, HEARTBEAT_MS / 4);
    this.#timer.unref?.();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Writes one whole line. */
  line(text: string): void {
    this.endLine();
    this.#write(`${text}\n`);
  }

  /** Writes text as it comes, in no lines of ours; a later line begins afresh. */
  text(text: string, speaker = ""): void {
    if (text === "") return;
    if (speaker !== this.#speaker) this.endLine();
    const lines = speaker === "" ? text : withSpeaker(text, speaker, !this.#lineOpen);
    this.#speaker = speaker;
    this.#lineOpen = !text.endsWith("\n");
    this.#write(lines);
  }

  /** Ends a line that is open. */
  endLine(): void {
    if (!this.#lineOpen) return;
    this.#lineOpen = false;
    this.#write("\n");
  }

  /** Writes the line or lines that an event means. */
  onEvent(event: AgentEvent): void {
    const who = event.agent ? `${this.#color.magenta(`[${event.agent.name}]`)} ` : "";
    switch (event.type) {
      case "request":
        this.#activity = "waiting for the model";
        return;
      case "tool_start":
        this.#activity = "running a cell";
        this.#toolStart(who, event.code);
        return;
      case "tool_output":
        this.text(printable(event.text), who);
        return;
      case "tool_end":
        this.#activity = "waiting for the model";
        this.#toolEnd(who, event.message);
        return;
      case "kernel_progress":
        this.#activity = event.stage.replace(/…$/, "").toLowerCase();
        this.line(this.#color.dim(`${who}${event.stage}`));
        return;
      case "kernel":
        if (event.state === "lost")
          this.line(
            this.#color.yellow(`${who}The kernel is gone: ${printable(event.reason ?? "")}`),
          );
        if (event.state === "restarted")
          this.line(this.#color.yellow(`${who}The kernel was restarted.`));
        return;
      default:
        this.#rare(who, event);
    }
  }

  #rare(who: string, event: AgentEvent): void {
    switch (event.type) {
      case "retry": {
        const seconds = Math.round(event.delayMs / 100) / 10;
        const retry = `retry ${event.attempt}/${event.maxRetries} in ${seconds} s`;
        this.line(this.#color.yellow(`${who}${printable(event.reason)}; ${retry}`));
        return;
      }
      case "compaction":
        this.line(
          this.#color.dim(
            `${who}Context compacted (${event.reason}, ${event.tokensBefore} tokens before)`,
          ),
        );
        return;
      case "check":
        this.line(
          `${event.passed ? this.#color.green("check passed") : this.#color.red("check failed")}: ${event.command}`,
        );
        return;
      case "injected":
        this.line(this.#color.dim(`${who}[${event.source}] ${clip(event.text, 200)}`));
        return;
      case "child": {
        // Until it has a place there is nothing to see; the spawning cell was shown.
        if (event.state === "queued") return;
        const tokens = event.usage ? ` · ${event.usage.totalTokens} tokens` : "";
        this.line(this.#color.dim(`${who}sub-agent ${event.state}${tokens}`));
        return;
      }
      case "warning":
        this.line(this.#color.yellow(`${who}warning: ${printable(event.message)}`));
        return;
      default:
    }
  }

  #isFull(who: string): boolean {
    return this.#options.detail === "full" && who === "";
  }

  #toolStart(who: string, code: string): void {
    if (this.#isFull(who)) return this.#lines(codeLines(code, this.#color));
    const lines = code.trim().split("\n");
    const more = lines.length > 1 ? this.#color.dim(` (+${lines.length - 1} lines)`) : "";
    this.line(`${who}${this.#color.cyan(">")} ${clip(lines[0] ?? "", 100)}${more}`);
  }

  #toolEnd(who: string, message: ToolResultMessage): void {
    const details = message.details as IpythonToolDetails | undefined;
    const result = details?.result ?? "";
    if (result !== "") this.text(`${printable(result).replace(/\n$/, "")}\n`, who);
    for (const diff of details?.diffs ?? []) {
      const lines = diffLines(diff, this.#color);
      if (this.#isFull(who)) this.#lines(lines);
      else this.line(`${who}${lines[0]}`);
    }
    for (const block of message.content) {
      if (block.type === "image" && this.#isFull(who)) this.line(imageLine(block, this.#color));
    }
    for (const note of details?.notes ?? []) this.#note(who, note);
    if (message.isError) this.line(`${who}${this.#color.red("✗")} ${failureOf(message, details)}`);
  }

  #note(who: string, note: string): void {
    const lines = this.#isFull(who) ? printable(note).split("\n") : [clip(note, 200)];
    for (const line of lines) this.line(`${who}${this.#color.dim(line)}`);
  }

  #lines(lines: readonly string[]): void {
    for (const line of lines) this.line(line);
  }

  #write(text: string): void {
    this.#lastWrite = performance.now();
    this.#options.write(this.#options.redact(text));
  }
}

/** A duration for people: `0.4s`, `12s`, `3m 20s`. */
export function formatDuration(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
}

/** What went wrong with a cell, in one line. */
function failureOf(message: ToolResultMessage, details: IpythonToolDetails | undefined): string {
  if (details?.status === "aborted") return details.abortReason ?? "interrupted";
  if (details?.error) return clip(`${details.error.ename}: ${details.error.evalue}`, 200);
  return clip(message.content.map((block) => ("text" in block ? block.text : "")).join(" "), 200);
}

/** Each line of a text with the mark of who says it. */
function withSpeaker(text: string, speaker: string, startsLine: boolean): string {
  const marked = text.replace(/\n(?=.)/gs, `\n${speaker}`);
  return startsLine ? speaker + marked : marked;
}

function clip(text: string, limit: number): string {
  const line = printable(text.replace(/\s+/g, " ").trim());
  return line.length > limit ? `${line.slice(0, limit - 1).toWellFormed()}…` : line;
}

/**
 * A run as plain lines on stderr: what happens, as it happens. No cursor
 * movement, no spinner, no carriage return.
 */

import pc from "picocolors";
import type { AgentEvent } from "../agent/events.ts";
import type { IpythonToolDetails } from "../app-kernel.ts";

/** Silence after which a line says that the run is alive. */
export const HEARTBEAT_MS = 30_000;

/** Settings of {@link ProgressLines}. */
export interface ProgressOptions {
  write(text: string): void;
  color: boolean;
  /** Takes secrets out of a text. */
  redact(text: string): string;
}

/** See the head of this file. */
export class ProgressLines {
  readonly #options: ProgressOptions;
  readonly #color: ReturnType<typeof pc.createColors>;
  readonly #started = performance.now();
  #activity = "starting";
  #lineOpen = false;
  #timer: ReturnType<typeof setInterval> | undefined;
  #lastWrite = performance.now();

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#color = pc.createColors(options.color);
  }

  /** Starts the heartbeat; {@link stop} ends it. `onBeat` hears each one. */
  startHeartbeat(onBeat?: (elapsedMs: number, activity: string) => void): void {
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
    const fresh = this.#lineOpen ? "\n" : "";
    this.#lineOpen = false;
    this.#write(`${fresh}${text}\n`);
  }

  /** Writes the line or lines that an event means. */
  onEvent(event: AgentEvent): void {
    const who = event.agent ? `${this.#color.magenta(`[${event.agent.name}]`)} ` : "";
    switch (event.type) {
      case "request":
        this.#activity = "waiting for the model";
        return;
      case "tool_start": {
        this.#activity = "running a cell";
        const lines = event.code.trim().split("\n");
        const more = lines.length > 1 ? this.#color.dim(` (+${lines.length - 1} lines)`) : "";
        this.line(`${who}${this.#color.cyan(">")} ${clip(lines[0] ?? "", 100)}${more}`);
        return;
      }
      case "tool_output":
        this.#output(`${who}${event.text}`);
        return;
      case "tool_end":
        this.#toolEnd(
          who,
          event.message.details as IpythonToolDetails | undefined,
          event.message.isError,
        );
        return;
      case "kernel_progress":
        this.#activity = event.stage.replace(/…$/, "").toLowerCase();
        this.line(this.#color.dim(`${who}${event.stage}`));
        return;
      case "kernel":
        if (event.state === "lost")
          this.line(this.#color.yellow(`${who}The kernel is gone: ${event.reason ?? ""}`));
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
        this.line(this.#color.yellow(`${who}${event.reason}; ${retry}`));
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
      case "child":
        this.line(this.#color.dim(`${who}sub-agent ${event.state}`));
        return;
      case "warning":
        this.line(this.#color.yellow(`${who}warning: ${event.message}`));
        return;
      default:
    }
  }

  #toolEnd(who: string, details: IpythonToolDetails | undefined, isError: boolean): void {
    this.#activity = "waiting for the model";
    if (details?.result) this.#output(`${details.result}\n`);
    for (const diff of details?.diffs ?? []) {
      this.line(
        `${who}${this.#color.dim("edited")} ${diff.path}${diff.start_line ? `:${diff.start_line}` : ""}`,
      );
    }
    if (!isError) return;
    const error = details?.error;
    const what = error
      ? clip(`${error.ename}: ${error.evalue}`, 200)
      : (details?.status ?? "failed");
    this.line(`${who}${this.#color.red("✗")} ${what}`);
  }

  #output(text: string): void {
    if (text === "") return;
    this.#lineOpen = !text.endsWith("\n");
    this.#write(text);
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

function clip(text: string, limit: number): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

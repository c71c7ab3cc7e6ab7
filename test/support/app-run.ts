/** A whole run in this process: real kernels and sessions, a scripted model, a home of its own. */

import { mkdirSync } from "node:fs";
import type { AgentEvent, RunOutcome } from "../../src/agent/events.ts";
import { createApp, type AgentApp } from "../../src/app.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { readConfig } from "../../src/cli/read-config.ts";
import { readEnvironment } from "../../src/config.ts";
import type { ToolResultMessage } from "../../src/message.ts";
import type { Provider, ProviderEvent, ProviderRequest } from "../../src/providers/provider.ts";
import {
  SCRIPTED_MODEL,
  ScriptedProvider,
  type ScriptedReply,
} from "../../src/providers/scripted.ts";
import { pythonFor, type PythonName } from "./python.ts";
import { TempDir } from "./temp-dir.ts";

/** What a test may want otherwise. */
export interface AppRunOptions {
  /** Flags of the command line. */
  args?: readonly string[];
  env?: Record<string, string>;
  python?: PythonName;
  gates?: Record<string, PromiseLike<unknown>>;
}

/** A reply that runs a cell. */
export function cell(code: string, more: ScriptedReply = {}): ScriptedReply {
  return { ...more, toolCalls: [{ name: "ipython", arguments: { code } }] };
}

/** The scripts of the agents by their names; the root's is called `root`, that of compactions `summary`. */
export type AgentScripts = Record<string, readonly ScriptedReply[]>;

/** One model for all agents: each is answered by its own script, whatever the order in which they ask. */
class FamilyModel implements Provider {
  readonly api = "scripted" as const;
  readonly requests: Array<{ name: string; request: ProviderRequest }> = [];
  readonly #scripts: Map<string, ScriptedProvider>;

  constructor(scripts: AgentScripts, gates: Record<string, PromiseLike<unknown>>) {
    this.#scripts = new Map(
      Object.entries(scripts).map(([name, replies]) => [
        name,
        new ScriptedProvider(replies, { gates }),
      ]),
    );
  }

  stream(request: ProviderRequest): AsyncIterable<ProviderEvent> {
    const name = request.tools.length === 0 ? "summary" : nameIn(request);
    this.requests.push({ name, request });
    const script = this.#scripts.get(name);
    if (!script) throw new Error(`there is no script for ${name}`);
    return script.stream(request);
  }
}

/** See the head of this file. Dispose of it: nothing is left then. */
export class AppRun implements AsyncDisposable {
  readonly dir: TempDir;
  readonly app: AgentApp;
  readonly model: FamilyModel;
  readonly events: AgentEvent[];
  readonly #heard: { wake: Array<() => void> };

  private constructor(parts: Pick<AppRun, "dir" | "app" | "model" | "events">, heard: any) {
    this.dir = parts.dir;
    this.app = parts.app;
    this.model = parts.model;
    this.events = parts.events;
    this.#heard = heard;
  }

  static async open(scripts: AgentScripts, options: AppRunOptions = {}): Promise<AppRun> {
    const dir = new TempDir();
    const work = dir.join("work");
    mkdirSync(work);
    const environment = readEnvironment({
      PATH: process.env["PATH"],
      HOME: dir.join("home"),
      LANG: "C.UTF-8",
      IPYTHONDIR: dir.join("ipython"),
      PRIME_AGENT_KERNEL_PYTHON: pythonFor(options.python ?? "newest"),
      ...options.env,
    });
    const args = parseArguments(["exec", "-C", work, ...(options.args ?? [])]);
    const model = new FamilyModel(scripts, options.gates ?? {});
    const events: AgentEvent[] = [];
    const heard = { wake: [] as Array<() => void> };
    const app = await createApp(readConfig(args.options, environment), {
      emit(event) {
        events.push(event);
        for (const wake of heard.wake.splice(0)) wake();
      },
      chooseWhenBusy: async () => "cancel",
      bind: async () => ({
        binding: {
          model: SCRIPTED_MODEL,
          provider: model,
          apiKey: undefined,
          request: { maxRetries: 0 },
        },
        warnings: [],
      }),
    });
    return new AppRun({ dir, app, model, events }, heard);
  }

  /** Answers a prompt. */
  run(prompt: string | undefined, signal = new AbortController().signal): Promise<RunOutcome> {
    return this.app.agent.run(prompt, signal);
  }

  /** Resolves when `condition` holds; it is looked at again with each event. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#heard.wake.push(resolve));
  }

  /** Resolves when an agent has asked the model `count` times. */
  async asked(name: string, count: number): Promise<void> {
    const made = () => this.model.requests.filter((request) => request.name === name).length;
    await this.until(() => made() >= count);
  }

  /** Everything that cells have printed so far, of one agent or (without a name) of the root. */
  printed(name?: string): string {
    return this.events
      .map((event) =>
        event.type === "tool_output" && event.agent?.name === name ? event.text : "",
      )
      .join("");
  }

  /** The results of the root's cells, also of those that a compaction has removed. */
  results(): ToolResultMessage[] {
    return this.app.session.entries.flatMap((entry) =>
      entry.type === "message" && entry.message.role === "toolResult" ? [entry.message] : [],
    );
  }

  /** The messages and notices that reached the root. */
  received(): string[] {
    return this.app.session.entries.flatMap((entry) =>
      entry.type === "custom_message" ? [String(entry.content)] : [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.dispose();
    this.dir[Symbol.dispose]();
  }
}

function nameIn(request: ProviderRequest): string {
  return /^Your name: (.+)$/m.exec(request.systemPrompt)?.[1] ?? "root";
}

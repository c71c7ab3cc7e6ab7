/** The app that the chat talks to. `/new` and `/resume` put another one in its place. */

import type { AgentApp, AppHooks } from "../app.ts";
import { createApp } from "../app.ts";
import type { Config, ModelConfig, SessionConfig } from "../config.ts";

/** See the head of this file. Owns the app: dispose of it. */
export class ChatApp {
  readonly #config: Config;
  readonly #hooks: AppHooks;
  #app: AgentApp | undefined;
  #model: ModelConfig;

  /** `hooks` hear only of the app that is in place. */
  constructor(config: Config, hooks: AppHooks) {
    this.#config = config;
    this.#hooks = hooks;
    this.#model = config.model;
  }

  /** The app in place. @throws Error before the first {@link open}. */
  get app(): AgentApp {
    if (!this.#app) throw new Error("the chat has no app yet");
    return this.#app;
  }

  /** The session in place, if any. */
  get session(): AgentApp["session"] | undefined {
    return this.#app?.session;
  }

  /** The skills of the app in place. */
  get skills(): AgentApp["skills"] {
    return this.#app?.skills ?? [];
  }

  /** Takes secrets out of a text, as far as they are known. */
  redact(text: string): string {
    return this.#app?.redact(text) ?? text;
  }

  /**
   * Opens a session in a new app and then ends the one that was in place; its kernel state is saved.
   * When this throws, as {@link createApp} does, nothing has changed.
   */
  async open(session: SessionConfig): Promise<AgentApp> {
    const isCurrent = () => this.#app === next;
    const next: AgentApp = await createApp(
      { ...this.#config, model: this.#model, session },
      {
        ...this.#hooks,
        emit: (event) => {
          if (isCurrent()) this.#hooks.emit(event);
        },
      },
    );
    const before = this.#app;
    this.#app = next;
    next.provisioner.prewarm();
    await before?.dispose();
    return next;
  }

  /** Takes another model, for this session and those that are opened later. Returns warnings. */
  async changeModel(selector: string): Promise<string[]> {
    const warnings = await this.app.model.change(selector);
    this.#model = { ...this.#model, selector: this.app.model.name };
    return warnings;
  }

  /** Takes another effort level, for this session and those that are opened later. */
  changeEffort(level: string): void {
    this.app.model.changeEffort(level);
    this.#model = { ...this.#model, effort: level };
  }

  /** Ends the app in place; by force when `hurry` fires, or fired before, and it still takes long. */
  async dispose(hurry: AbortSignal, killAfterMs: number): Promise<void> {
    const app = this.#app;
    if (!app) return;
    if (hurry.aborted) return await app.dispose(killAfterMs);
    const kill = () => void app.provisioner.kill("the chat was left");
    hurry.addEventListener("abort", kill, { once: true });
    await app.dispose();
    hurry.removeEventListener("abort", kill);
  }
}

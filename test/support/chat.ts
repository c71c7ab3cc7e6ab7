/** The compiled chat in a terminal of its own, against a scripted provider. */

import { resolve } from "node:path";
import { processesOf } from "./processes.ts";
import { PROGRAM, UserHome } from "./program.ts";
import { ProviderServer, type ServedScript } from "./provider-server.ts";
import { TmuxWindow } from "./tmux.ts";

const KERNEL_VENV = resolve(import.meta.dir, "../../.cache/e2e/kernel-venv");

/** The modes of a terminal that nobody has changed. */
export const SANE_MODES = "icrnl opost isig icanon echo";

const REPORT = [
  "echo ended=$?",
  "stty -a | tr ' ' '\\n' | grep -E '^-?(icanon|echo|isig|icrnl|opost);?$' | xargs",
].join("; ");
const ENDED = /ended=(\d+)\n(.*)\n\$$/;

/** How to start a chat. */
export interface ChatOptions {
  replies?: readonly ServedScript[];
  /** After the model's flags. */
  args?: readonly string[];
  columns?: number;
  rows?: number;
  env?: Record<string, string>;
}

/** See the head of this file. */
export class Chat implements AsyncDisposable {
  readonly user: UserHome;
  readonly server: ProviderServer;
  readonly window: TmuxWindow;

  private constructor(user: UserHome, server: ProviderServer, window: TmuxWindow) {
    this.user = user;
    this.server = server;
    this.window = window;
  }

  /** Opens a window and starts the chat in it; resolves when its prompt waits. */
  static async start(options: ChatOptions = {}): Promise<Chat> {
    const chat = await Chat.open(options);
    await chat.run(options.args ?? []);
    await chat.waitForPrompt();
    return chat;
  }

  /** Opens a window with a shell, and starts nothing. */
  static async open(options: ChatOptions = {}): Promise<Chat> {
    const server = await ProviderServer.start(options.replies ?? []);
    const user = new UserHome();
    const window = await TmuxWindow.open({
      cwd: user.cwd,
      columns: options.columns ?? 100,
      rows: options.rows ?? 40,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: user.home,
        PRIME_AGENT_KERNEL_VENV: KERNEL_VENV,
        TEST_KEY: "a-key-for-tests",
        PROGRAM,
        SCRIPT: `$PROGRAM $FLAGS "$@"; ${REPORT}`,
        PRIME_AGENT_MODEL: "local/test",
        FLAGS: [
          `--base-url ${server.baseUrl("openai-completions")}`,
          "--api openai-completions --api-key-env TEST_KEY",
        ].join(" "),
        ...options.env,
      },
    });
    return new Chat(user, server, window);
  }

  /**
   * Types the command line of the program, with the flags that lead to the server. A shell that mends
   * nothing waits for it and then prints what {@link ended} reads.
   */
  async run(args: readonly string[]): Promise<void> {
    await this.window.enter(`clear; sh -c "$SCRIPT" sh ${args.join(" ")}`);
    // What an earlier run has shown must not be taken for this one's.
    await this.window.waitFor((screen) => !screen.includes("ended="));
  }

  /** Waits for an empty prompt line at the end of the screen. */
  async waitForPrompt(): Promise<string> {
    return await this.window.waitFor(/\n>$/);
  }

  /** Command lines of the processes that the program started, its own among them. */
  processes(): string[] {
    return processesOf(this.user.home).filter((command) => !/^(bash|tmux) /.test(command));
  }

  /** Resolves when the program and all that it started have ended. */
  async untilGone(): Promise<void> {
    await this.window.waitFor(() => this.processes().length === 0);
  }

  /** Waits for the program's end; its exit code, the screen, and the terminal's modes that it left. */
  async ended(): Promise<{ code: number; screen: string; modes: string }> {
    const screen = await this.window.waitFor(ENDED);
    const [, code, modes = ""] = ENDED.exec(screen) as RegExpExecArray;
    return { code: Number(code), screen: screen.replace(ENDED, ""), modes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.window[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    this.user[Symbol.dispose]();
  }
}

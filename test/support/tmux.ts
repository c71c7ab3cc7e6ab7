/**
 * A terminal for tests: a tmux server of its own with one window, in it a shell, in the shell what
 * the test types. Everything is waited for by looking at the screen.
 */

import { TempDir } from "./temp-dir.ts";

const POLL_MS = 25;
const WAIT_MS = 30_000;

/** How to start. */
export interface TmuxOptions {
  /** The shell's environment, whole. */
  env: Record<string, string>;
  cwd: string;
  columns?: number;
  rows?: number;
}

/** What is waited for: a text on the screen, a pattern, or anything that can be asked. */
export type Wanted = string | RegExp | ((screen: string) => boolean);

/** See the head of this file. */
export class TmuxWindow implements AsyncDisposable {
  readonly #dir: TempDir;
  readonly #env: Record<string, string>;
  #isClosed = false;

  private constructor(dir: TempDir, env: Record<string, string>) {
    this.#dir = dir;
    this.#env = env;
  }

  /** Opens a window with a shell that waits for input. */
  static async open(options: TmuxOptions): Promise<TmuxWindow> {
    const env = { ...options.env, LANG: "C.UTF-8", HISTFILE: "/dev/null" };
    const window = new TmuxWindow(new TempDir(), env);
    const size = ["-x", String(options.columns ?? 100), "-y", String(options.rows ?? 40)];
    const shell = "PS1='$ ' exec bash --norc --noprofile -i";
    await window.#tmux("-f", "/dev/null", "new-session", "-d", ...size, "-c", options.cwd, shell);
    await window.waitFor(/^\$$/);
    return window;
  }

  /** Types text as it is. */
  async type(text: string): Promise<void> {
    await this.#tmux("send-keys", "-l", "--", text);
  }

  /** Presses keys by tmux's names: `Enter`, `C-c`, `M-Enter`, `Up`. */
  async press(...keys: string[]): Promise<void> {
    await this.#tmux("send-keys", ...keys);
  }

  /** Types a line. */
  async enter(line: string): Promise<void> {
    await this.type(line);
    await this.press("Enter");
  }

  /** Pastes as a terminal does: in brackets, where the program asked for them. */
  async paste(text: string): Promise<void> {
    const file = this.#dir.write("paste", text);
    await this.#tmux("load-buffer", file);
    await this.#tmux("paste-buffer", "-p", "-d");
  }

  async resize(columns: number, rows: number): Promise<void> {
    await this.#tmux("resize-window", "-x", String(columns), "-y", String(rows));
  }

  /** The window's text; with `all`, what has left it above too. Trailing spaces and lines are gone. */
  async screen(options: { all?: boolean; colors?: boolean } = {}): Promise<string> {
    const more = [...(options.all ? ["-S", "-"] : []), ...(options.colors ? ["-e"] : [])];
    const text = await this.#tmux("capture-pane", "-p", ...more);
    return text.replace(/[ \t]+$/gm, "").trimEnd();
  }

  /** Where the cursor is in the window, from 0. */
  async cursor(): Promise<{ row: number; column: number }> {
    const text = await this.#tmux("display-message", "-p", "#{cursor_y} #{cursor_x}");
    const [row = 0, column = 0] = text.split(" ").map(Number);
    return { row, column };
  }

  /** Waits until it is there; returns the screen. Fails with the screen when it never comes. */
  async waitFor(wanted: Wanted): Promise<string> {
    const deadline = performance.now() + WAIT_MS;
    for (;;) {
      const screen = await this.screen();
      if (fits(screen, wanted)) return screen;
      if (performance.now() > deadline) {
        throw new Error(`waited in vain for ${wanted}; the screen shows:\n${screen}`);
      }
      await Bun.sleep(POLL_MS);
    }
  }

  /** Closes the window, as when the person closes the terminal's. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#tmux("kill-server");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    this.#dir[Symbol.dispose]();
  }

  async #tmux(...args: string[]): Promise<string> {
    const child = Bun.spawn(["tmux", "-S", this.#dir.join("socket"), ...args], {
      env: { ...this.#env, TERM: "xterm-256color" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    if (code !== 0) throw new Error(`tmux ${args.join(" ")}: ${stderr}`);
    return stdout;
  }
}

function fits(screen: string, wanted: Wanted): boolean {
  if (typeof wanted === "string") return screen.includes(wanted);
  return wanted instanceof RegExp ? wanted.test(screen) : wanted(screen);
}

/**
 * A small process beside a directly started kernel, for the case that this
 * host is killed while C code in the kernel keeps its threads from running:
 * then nobody else would end the kernel.
 *
 * It is a shell that waits for the end of a pipe from this host, and only
 * then becomes a Python (kernel/rlm/guard.py), which looks after the kernel.
 */

import { debug } from "../log.ts";

const SHELL = "/bin/sh";
/** What the list of processes shows. */
const NAME = "prime-agent-kernel-guard";
const SCRIPT = 'read -r line; exec "$@"';

/** What the guard has to know of the kernel, as its launcher reads it. */
export interface GuardedKernel {
  pid: number;
  /** When it started, as its ready line tells. */
  start_time: number;
  kernel_dir: string;
}

/** The guard of one kernel. */
export class KernelGuard {
  readonly #child: Bun.Subprocess<"pipe", "ignore", "ignore"> | undefined;

  constructor(
    options: { python: string; launcher: string; env: Record<string, string> },
    kernel: GuardedKernel,
  ) {
    const config = JSON.stringify({ guard: kernel });
    const command = [options.python, "-I", options.launcher, config];
    try {
      this.#child = Bun.spawn([SHELL, "-c", SCRIPT, NAME, ...command], {
        cwd: "/",
        env: options.env,
        // In a session of its own: what the terminal sends to this host's group is not for it.
        detached: true,
        stdio: ["pipe", "ignore", "ignore"],
      });
      this.#child.unref();
    } catch (error) {
      debug("kernel", "a kernel has no guard", error);
    }
  }

  /** Ends the guard, once the kernel has ended. Resolves when it is gone; never rejects. */
  async release(): Promise<void> {
    this.#child?.kill("SIGKILL");
    await this.#child?.exited;
  }
}

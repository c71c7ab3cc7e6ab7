/**
 * One kernel boot, top-down: Python environment, permit, process, connection,
 * restore, bootstrap cell. Each stage is reported while it happens; each can
 * be aborted; a boot that fails leaves nothing behind.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { delay, raceWithAbort, type Semaphore } from "../async.ts";
import { debug } from "../log.ts";
import { buildRlmBootstrapCode, type BootstrapOptions } from "./bootstrap.ts";
import { describeExit, KernelDiedError, KernelStartError, withLastWords } from "./errors.ts";
import type { ForkServers } from "./fork-servers.ts";
import type { HostHandlers } from "./host-bridge.ts";
import { Kernel, type KernelParts } from "./kernel.ts";
import { launchKernel } from "./launch.ts";
import { discardKernel } from "./launched-kernel.ts";
import type { KernelProcess, ReadyLine } from "./process.ts";
import { restoreNamespace, SNAPSHOT_FILE, type RestoreReport } from "./snapshot.ts";

/** A machine under load may take long to import IPython; whoever waits sees the stage meanwhile. */
const READY_TIMEOUT_MS = 90_000;

/** The interpreter and our Python side, found or built when the first kernel needs them. */
export interface KernelRuntime {
  /** The interpreter to run. */
  python: string;
  /** The folder that holds `launcher.py`. */
  root: string;
}

/** What every boot of one session has in common. */
export interface BootOptions {
  /** Finds or builds the runtime; reports what takes time. */
  prepare(report: (stage: string) => void, signal: AbortSignal): Promise<KernelRuntime>;
  permits: Semaphore;
  forkServers: ForkServers;
  cwd: string;
  /** Entries that go last on `sys.path`. */
  paths: string[];
  env: Record<string, string>;
  transport: "ipc" | "tcp";
  /** Preferred places for the private folder. */
  runtimeDirs: string[];
  handlers: HostHandlers;
  bootstrap: BootstrapOptions;
  snapshotDir?: string;
  onLateReceipt?(receipt: unknown): void;
}

/** A kernel that is ready for cells. */
export interface BootedKernel {
  kernel: Kernel;
  ready?: ReadyLine;
  restore?: RestoreReport;
  bootMs: number;
}

/**
 * Boots a kernel.
 *
 * @throws KernelStartError with the last lines of stderr; AbortedError when `signal` fires.
 */
export async function bootKernel(
  options: BootOptions,
  report: (stage: string) => void,
  signal: AbortSignal,
): Promise<BootedKernel> {
  const started = performance.now();
  const runtime = await options.prepare(report, signal);
  if (!options.permits.available) report("Waiting for other kernels to start…");
  const releasePermit = await options.permits.acquire(signal);
  try {
    report("Starting IPython kernel…");
    const booted = await bootTwice(() => bootOnce(runtime, options, report, signal));
    return { ...booted, bootMs: Math.round(performance.now() - started) };
  } finally {
    releasePermit();
  }
}

/** A saved value can end the kernel that restores it; the next kernel knows that and leaves it alone. */
async function bootTwice<T>(boot: () => Promise<T>): Promise<T> {
  try {
    return await boot();
  } catch (error) {
    if (!(error instanceof KernelDiedError)) throw error;
    debug("kernel", "the kernel died while it was set up; trying once more", error);
    return await boot();
  }
}

async function bootOnce(
  runtime: KernelRuntime,
  options: BootOptions,
  report: (stage: string) => void,
  signal: AbortSignal,
): Promise<Omit<BootedKernel, "bootMs">> {
  const snapshotDir = snapshotToRestore(options);
  const { cwd, paths, env, transport, runtimeDirs, bootstrap, forkServers } = options;
  const plan = { ...runtime, cwd, paths, env, transport, runtimeDirs };
  const launched = await launchKernel(
    snapshotDir === undefined ? { ...plan, bootstrap } : plan,
    forkServers,
    signal,
  );
  let kernel: Kernel | undefined;
  try {
    const ready = await untilReady(launched.process, signal);
    kernel = await connectTo(launched.process, { ...options, ...launched }, signal);
    let restore: RestoreReport | undefined;
    if (snapshotDir !== undefined) {
      report("Restoring the kernel's variables…");
      restore = await raceWithAbort(restoreNamespace(kernel, snapshotDir), signal);
    }
    // After the restore: our own helpers win over what was restored.
    if (!ready.bootstrapped) await raceWithAbort(runBootstrap(kernel, bootstrap), signal);
    return { kernel, ready, ...(restore && { restore }) };
  } catch (error) {
    discardKernel(launched);
    await kernel?.kill();
    throw error;
  }
}

/** Connects, for as long as the process lives. */
async function connectTo(
  child: KernelProcess,
  parts: KernelParts,
  signal: AbortSignal,
): Promise<Kernel> {
  const gaveUp = new AbortController();
  const connecting = Kernel.connect({ ...parts, signal: AbortSignal.any([signal, gaveUp.signal]) });
  const died = child.exited.then(async (exit) => {
    const stderrTail = await child.stderrTail();
    const message = `The kernel ended before it could be reached: ${describeExit(exit)}.`;
    throw new KernelStartError(withLastWords(message, stderrTail), { stderrTail });
  });
  died.catch(() => undefined);
  try {
    return await Promise.race([connecting, died]);
  } catch (error) {
    gaveUp.abort();
    connecting.catch((late) => debug("kernel", "connecting was given up", late));
    throw error;
  }
}

async function untilReady(child: KernelProcess, signal: AbortSignal): Promise<ReadyLine> {
  const timer = new AbortController();
  const tooLate = delay(READY_TIMEOUT_MS, timer.signal).then(async () => {
    const stderrTail = await child.stderrTail();
    const message = `The kernel was not ready after ${READY_TIMEOUT_MS / 1000} s.`;
    throw new KernelStartError(withLastWords(message, stderrTail), { stderrTail });
  });
  tooLate.catch(() => undefined);
  try {
    return await raceWithAbort(Promise.race([child.ready, tooLate]), signal);
  } finally {
    timer.abort();
  }
}

/** The folder of a snapshot that is there. */
function snapshotToRestore({ snapshotDir }: BootOptions): string | undefined {
  return snapshotDir && existsSync(join(snapshotDir, SNAPSHOT_FILE)) ? snapshotDir : undefined;
}

async function runBootstrap(kernel: Kernel, bootstrap: BootstrapOptions): Promise<void> {
  const outcome = await kernel.execute(buildRlmBootstrapCode(bootstrap), {
    silent: true,
    onOutput: (output) => debug("kernel", "the bootstrap said", output),
  });
  if (outcome.status === "ok") return;
  const reason = outcome.error ? `${outcome.error.ename}: ${outcome.error.evalue}` : outcome.status;
  throw new KernelStartError(`The kernel's bootstrap failed (${reason}).`, {
    stderrTail: outcome.error?.traceback.join("\n") ?? "",
  });
}

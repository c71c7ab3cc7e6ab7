/** The tool over a real kernel of our own, for tests on both ends of the supported range. */

import { join, resolve } from "node:path";
import { Semaphore } from "../../src/async.ts";
import type { BootOptions } from "../../src/kernel/boot.ts";
import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { HostHandlers } from "../../src/kernel/host-bridge.ts";
import {
  bootOwnKernel,
  IpythonKernelProvisioner,
  type KernelReadyEvent,
  type ProvisionerOptions,
} from "../../src/kernel/provisioner.ts";
import {
  createIpythonTool,
  type BusyChoice,
  type IpythonCallOptions,
  type IpythonResult,
  type IpythonTool,
  type IpythonToolOptions,
} from "../../src/tool/ipython.ts";
import { pythonFor, type PythonName } from "./python.ts";
import { TempDir } from "./temp-dir.ts";

/** What a test may want otherwise. */
export interface ToolKernelOptions extends Partial<Omit<IpythonToolOptions, "provisioner">> {
  python?: PythonName;
  handlers?: HostHandlers;
  /** Snapshots go into the kernel's own folder. */
  snapshots?: boolean;
  /** Snapshots go there, and come from there. */
  snapshotDir?: string;
  onRestore?: ProvisionerOptions["onRestore"];
  forkServers?: ForkServers;
  transport?: "ipc" | "tcp";
  cwd?: string;
  env?: Record<string, string>;
  onLateReceipt?(receipt: unknown): void;
  boot?: ProvisionerOptions["boot"];
}

/** A tool, its kernel, and a folder of their own; all gone when disposed. */
export class ToolKernel implements AsyncDisposable {
  readonly dir = new TempDir();
  readonly provisioner: IpythonKernelProvisioner;
  readonly tool: IpythonTool;
  /** Every kernel that became ready. */
  readonly ready: KernelReadyEvent[] = [];
  /** Every death that nobody asked for. */
  readonly lost: Error[] = [];

  constructor(options: ToolKernelOptions = {}) {
    const snapshotDir =
      options.snapshotDir ?? (options.snapshots ? this.dir.join("artifacts") : undefined);
    this.provisioner = new IpythonKernelProvisioner({
      boot: options.boot ?? bootOwnKernel(this.bootOptions(options, snapshotDir)),
      ...(snapshotDir && { snapshotDir }),
      ...(options.onRestore && { onRestore: options.onRestore }),
      onReady: (event) => this.ready.push(event),
      onLost: (error) => this.lost.push(error),
    });
    this.tool = createIpythonTool({
      outputDir: () => this.dir.join("output"),
      chooseWhenBusy: async (): Promise<BusyChoice> => "cancel",
      ...options,
      provisioner: this.provisioner,
    });
  }

  /** Runs a cell. */
  run(code: string, options: IpythonCallOptions = {}): Promise<IpythonResult> {
    return this.tool.run(code, options);
  }

  /** Runs a cell and returns the text that the model gets. */
  async text(code: string, options: IpythonCallOptions = {}): Promise<string> {
    return textOf(await this.run(code, options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provisioner.dispose();
    this.dir[Symbol.dispose]();
  }

  private bootOptions(options: ToolKernelOptions, snapshotDir: string | undefined): BootOptions {
    const python = pythonFor(options.python ?? "newest");
    return {
      prepare: async () => ({ python, root: resolve(import.meta.dir, "../../kernel") }),
      permits: new Semaphore(4),
      forkServers: options.forkServers ?? new ForkServers(false),
      cwd: options.cwd ?? this.dir.path,
      paths: [],
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: this.dir.path,
        IPYTHONDIR: join(this.dir.path, "ipython"),
        ...options.env,
      },
      transport: options.transport ?? "ipc",
      runtimeDirs: [],
      handlers: options.handlers ?? {},
      bootstrap: { skills: [], depth: 0, max_depth: 1 },
      ...(snapshotDir && { snapshotDir }),
      ...(options.onLateReceipt && { onLateReceipt: options.onLateReceipt }),
    };
  }
}

/** The text blocks of a result. */
export function textOf(result: IpythonResult): string {
  return result.content
    .map((block) => (block.type === "text" ? block.text : `[${block.mimeType}]`))
    .join("\n");
}

/** Aborts when a promise resolves; for tests that abort at a known point. */
export function abortWhen(promise: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  void promise.then(() => controller.abort());
  return controller.signal;
}

/** A call's output as it comes, and the moment when it holds a text. */
export class Watched {
  text = "";
  readonly #waiters: Array<{ needle: string; resolve: () => void }> = [];

  readonly onOutput = (_stream: "stdout" | "stderr", text: string): void => {
    this.text += text;
    for (const { needle, resolve } of this.#waiters) if (this.text.includes(needle)) resolve();
  };

  /** Resolves when the output holds `needle`. */
  saw(needle: string): Promise<void> {
    if (this.text.includes(needle)) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ needle, resolve }));
  }
}

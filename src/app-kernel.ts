/** Builds the kernel parts of a run: environment, provisioner, tool. */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { Semaphore, TIMED_OUT, within } from "./async.ts";
import { firstWritable, variable, type Config } from "./config.ts";
import { UsageError } from "./errors.ts";
import { loadAssets, type KernelAssets } from "./kernel/assets.ts";
import type { KernelRuntime } from "./kernel/boot.ts";
import type { PythonSkill } from "./kernel/bootstrap.ts";
import { ensurePythonEnvironment, type PythonEnvironment } from "./kernel/environment.ts";
import { connectExistingKernel } from "./kernel/existing.ts";
import { ForkServers } from "./kernel/fork-servers.ts";
import type { HostHandlers } from "./kernel/host-bridge.ts";
import {
  bootOwnKernel,
  IpythonKernelProvisioner,
  type ProvisionerOptions,
} from "./kernel/provisioner.ts";
import { createIpythonTool, type IpythonTool, type IpythonToolOptions } from "./tool/ipython.ts";

export type { IpythonResult } from "./tool/ipython.ts";
export type { IpythonToolDetails } from "./tool/details.ts";

/** What all kernels of one process share. */
export interface KernelHost {
  readonly config: Config;
  readonly permits: Semaphore;
  readonly forkServers: ForkServers;
  /** The environment that kernels get: without credentials. */
  readonly env: Record<string, string>;
  /** The Python side as files; unpacked once. */
  assets(): Promise<KernelAssets>;
  /** Finds or builds the runtime once for all. */
  prepare(report: (stage: string) => void, signal: AbortSignal): Promise<KernelRuntime>;
}

/** What differs from kernel to kernel. */
export interface KernelPartsOptions {
  handlers: HostHandlers;
  skills: PythonSkill[];
  depth: number;
  /** Where this session's files go; undefined when nothing is kept. */
  artifactsDir(): string | undefined;
  chooseWhenBusy: IpythonToolOptions["chooseWhenBusy"];
  /** Whether the model sees images; asked when a kernel boots. Absent: it does. */
  vision?(): boolean;
  onReady?: ProvisionerOptions["onReady"];
  onLost?: ProvisionerOptions["onLost"];
  onLateReceipt?(receipt: unknown): void;
}

/** One kernel's parts. */
export interface KernelParts {
  provisioner: IpythonKernelProvisioner;
  tool: IpythonTool;
}

/** Lets the `attach_image` skill refuse what the model could not see. */
const BLIND = { PRIME_AGENT_VISION: "0" };

/** Makes what the kernels of this process share. `credentials` are the names of variables that cells may not see. */
export function createKernelHost(config: Config, credentials: Iterable<string>): KernelHost {
  let runtime: Promise<KernelRuntime> | undefined;
  let assets: Promise<KernelAssets> | undefined;
  const folders = { home: config.environment.home, env: config.environment.variables };
  const getAssets = () => (assets ??= loadAssets(folders));
  return {
    assets: getAssets,
    config,
    permits: new Semaphore(config.kernel.maxConcurrentBoots),
    forkServers: new ForkServers(config.kernel.forkServer),
    env: kernelVariables(config, credentials),
    prepare(report, signal) {
      runtime ??= prepareRuntime(config, getAssets, report, signal).catch((error) => {
        runtime = undefined;
        throw error;
      });
      return runtime;
    },
  };
}

/** Makes a provisioner and the tool on top of it. */
export function createKernelParts(host: KernelHost, options: KernelPartsOptions): KernelParts {
  const { kernel } = host.config;
  const artifacts = kernel.existing === undefined ? options.artifactsDir() : undefined;
  const provisioner = new IpythonKernelProvisioner({
    boot:
      kernel.existing === undefined
        ? bootOwn(host, options, artifacts)
        : connectExistingKernel(kernel.existing),
    ...(artifacts && { snapshotDir: artifacts }),
    ...(options.onReady && { onReady: options.onReady }),
    ...(options.onLost && { onLost: options.onLost }),
  });
  const tool = createIpythonTool({
    provisioner,
    outputDir: () => options.artifactsDir() ?? join(tmpdir(), `prime-agent-output-${process.pid}`),
    chooseWhenBusy: options.chooseWhenBusy,
    ...(kernel.shellPath && { shellPath: kernel.shellPath }),
    ...(kernel.commandPrefix && { commandPrefix: kernel.commandPrefix }),
    ...(kernel.cellTimeoutMs !== undefined && { cellTimeoutMs: kernel.cellTimeoutMs }),
  });
  return { provisioner, tool };
}

/** Ends a kernel in good order; with `killAfterMs`, by force when that takes longer. */
export async function endKernel(
  provisioner: IpythonKernelProvisioner,
  killAfterMs?: number,
): Promise<void> {
  const ended = provisioner.dispose();
  if (killAfterMs !== undefined && (await within(ended, killAfterMs)) === TIMED_OUT)
    await provisioner.kill("the run was ended");
  await ended;
}

function bootOwn(
  host: KernelHost,
  options: KernelPartsOptions,
  snapshotDir: string | undefined,
): ProvisionerOptions["boot"] {
  const { config } = host;
  const pythonPath = variable(config.environment, "PYTHONPATH")?.split(":").filter(Boolean) ?? [];
  return bootOwnKernel({
    prepare: (report, signal) => host.prepare(report, signal),
    permits: host.permits,
    forkServers: host.forkServers,
    cwd: config.cwd,
    paths: [config.cwd, ...pythonPath],
    get env() {
      return options.vision?.() === false ? { ...host.env, ...BLIND } : host.env;
    },
    transport: config.kernel.transport,
    runtimeDirs: [variable(config.environment, "XDG_RUNTIME_DIR") ?? ""].filter(Boolean),
    handlers: options.handlers,
    bootstrap: { skills: options.skills, depth: options.depth, max_depth: config.maxDepth },
    ...(snapshotDir && { snapshotDir }),
    ...(options.onLateReceipt && { onLateReceipt: options.onLateReceipt }),
  });
}

async function prepareRuntime(
  config: Config,
  getAssets: () => Promise<KernelAssets>,
  report: (stage: string) => void,
  signal: AbortSignal,
): Promise<KernelRuntime> {
  const assets = await getAssets();
  const environment = await ensureEnvironment(config, assets, [], { onProgress: report, signal });
  return { python: environment.python, root: assets.root };
}

/** Builds the kernel's environment without starting a kernel, and adds `packages` to it. */
export async function setUpEnvironment(
  config: Config,
  packages: readonly string[],
  watch: { onProgress(line: string): void; signal: AbortSignal },
): Promise<PythonEnvironment> {
  const { home, variables } = config.environment;
  const assets = await loadAssets({ home, env: variables, onProgress: watch.onProgress });
  return await ensureEnvironment(config, assets, packages, watch);
}

function ensureEnvironment(
  config: Config,
  assets: KernelAssets,
  extraPackages: readonly string[],
  watch: { onProgress(line: string): void; signal: AbortSignal },
): Promise<PythonEnvironment> {
  return ensurePythonEnvironment({
    home: config.environment.home,
    env: config.environment.variables,
    assets,
    venvDir: config.kernel.venvDir,
    python: config.kernel.python,
    pythonOverride: config.kernel.pythonOverride,
    extraPackages,
    ...watch,
  });
}

/** The variables of a kernel: ours, less the credentials that nobody passed on by name. */
function kernelVariables(config: Config, credentials: Iterable<string>): Record<string, string> {
  const passed = new Set(config.kernel.envPass);
  for (const name of passed) {
    if (!/^[A-Za-z_]\w*$/.test(name))
      throw new UsageError(`--env-pass takes the name of a variable, not "${name}"`);
  }
  const env: Record<string, string> = { ...config.environment.variables };
  for (const name of credentials) if (!passed.has(name)) delete env[name];
  return env;
}

/** Where this program may write its own files; undefined when nowhere. */
export function writableHome(config: Config): string | undefined {
  return firstWritable([config.environment.home]);
}

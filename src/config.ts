/**
 * What a run is told: the environment, the settings files and the flags, read
 * once into frozen values. The only file that reads `process.env`.
 */

import { accessSync, constants, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { errorMessage, UsageError } from "./errors.ts";
import { debug } from "./log.ts";

/** The environment as this program sees it. */
export interface Environment {
  /** Every variable, as inherited. */
  variables: Readonly<Record<string, string>>;
  /** Where settings, sessions and the kernel environment live (`PRIME_AGENT_HOME`, else `~/.prime/agent`). */
  home: string;
  /** The person's home folder; undefined when there is none. */
  userHome: string | undefined;
  /** The folder this process was started in; undefined when it no longer exists. */
  cwd: string | undefined;
}

/** Settings of the kernel, from flags and environment. */
export interface KernelConfig {
  /** `--python`: the interpreter to build the managed environment with. */
  python?: string;
  /** `PRIME_AGENT_KERNEL_PYTHON`: an interpreter to use as it is. */
  pythonOverride?: string;
  /** `PRIME_AGENT_KERNEL_VENV`. */
  venvDir?: string;
  forkServer: boolean;
  transport: "ipc" | "tcp";
  maxConcurrentBoots: number;
  /** `--existing`: the connection file of a kernel that somebody else started. */
  existing?: string;
  shellPath?: string;
  commandPrefix?: string;
  onBusy: "cancel" | "restart";
  cellTimeoutMs?: number;
  /** Names of variables that cells may see although they hold credentials. */
  envPass: string[];
}

/** Which session a run belongs to. */
export interface SessionConfig {
  /** `-c`: the latest session of this folder. */
  continueLatest: boolean;
  /** `-r`: a session by id, prefix or path; "" means the latest one anywhere. */
  resume?: string;
  fork: boolean;
  id?: string;
  name?: string;
  save: boolean;
}

/** Limits of a run; absent means none. */
export interface LimitConfig {
  timeoutMs?: number;
  maxTurns?: number;
  maxTokens?: number;
  maxBudgetUsd?: number;
  maxRetries: number;
}

/** How a run speaks. */
export interface OutputConfig {
  format: "text" | "json" | "stream-json";
  includePartialMessages: boolean;
  lastMessageFile?: string;
  quiet: boolean;
  verbose: boolean;
  color: "auto" | "always" | "never";
}

/** Which model answers, as far as flags and environment say. */
export interface ModelConfig {
  selector?: string;
  effort?: string;
  baseUrl?: string;
  api?: string;
  apiKeyEnv?: string;
}

/** What goes into the prompt beside the prompt. */
export interface PromptConfig {
  systemPrompt?: string;
  appendSystemPrompt?: string;
  contextFiles: boolean;
  skills: boolean;
  skillPaths: string[];
  trustProject: boolean;
  images: string[];
  goal?: string;
}

/** Everything a run is told. */
export interface Config {
  environment: Environment;
  cwd: string;
  model: ModelConfig;
  output: OutputConfig;
  limits: LimitConfig;
  session: SessionConfig;
  prompt: PromptConfig;
  kernel: KernelConfig;
  checks: string[];
  /** `--script`: a file of prepared replies, in place of a model. */
  script?: string;
  stdin: "auto" | "wait" | "ignore";
  offline: boolean;
  /** `--bare`: nothing that was not named. */
  bare: boolean;
  /** How deep sub-agents may nest (`RLM_MAX_DEPTH`). */
  maxDepth: number;
  settings: Settings;
}

/** The keys of `settings.json` that we know; others are left alone. */
export interface Settings {
  model?: string;
  effort?: string;
  shellPath?: string;
  commandPrefix?: string;
  skills?: string[];
  maxRetries?: number;
}

/** Reads the process's environment. Never throws: a missing home or folder is a value. */
export function readEnvironment(
  source: Record<string, string | undefined> = process.env,
): Environment {
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(source))
    if (value !== undefined) variables[name] = value;
  const userHome = variables["HOME"] || accountHome();
  const home = variables["PRIME_AGENT_HOME"] || (userHome && join(userHome, ".prime", "agent"));
  return {
    variables,
    home: home ? resolve("/", home) : temporaryHome(tmpdir()),
    userHome,
    cwd: currentFolder(),
  };
}

/** The home of this user's account; a user id that has no account, as containers use, has none. */
function accountHome(): string | undefined {
  try {
    return homedir() || undefined;
  } catch (error) {
    debug("config", "this user has no account", error);
    return undefined;
  }
}

/** Below it nothing is found and nothing can be written. */
const NOWHERE = "/dev/null/prime-agent";

/**
 * Where somebody without a home keeps things: a folder of their own below `folder`. One that others made
 * or may write to could hold settings that steal a key; then there is none.
 */
export function temporaryHome(folder: string, uid = process.getuid?.()): string {
  const home = join(folder, `prime-agent-${uid ?? "user"}`);
  const found = lstatSync(home, { throwIfNoEntry: false });
  const isOwn =
    !found ||
    (found.isDirectory() && found.uid === (uid ?? found.uid) && (found.mode & 0o022) === 0);
  return isOwn ? home : NOWHERE;
}

/** A variable's value; one that is set but empty counts as unset. */
export function variable(environment: Environment, name: string): string | undefined {
  return environment.variables[name] || undefined;
}

/** The kernel settings that only the environment has. */
export function kernelEnvironment(
  environment: Environment,
): Pick<
  KernelConfig,
  "pythonOverride" | "venvDir" | "forkServer" | "transport" | "maxConcurrentBoots"
> {
  const pythonOverride = variable(environment, "PRIME_AGENT_KERNEL_PYTHON");
  const venvDir = variable(environment, "PRIME_AGENT_KERNEL_VENV");
  const transport = variable(environment, "PRIME_AGENT_KERNEL_TRANSPORT") ?? "ipc";
  if (transport !== "ipc" && transport !== "tcp") {
    throw new UsageError(`PRIME_AGENT_KERNEL_TRANSPORT is "${transport}", but must be ipc or tcp`);
  }
  return {
    ...(pythonOverride && { pythonOverride }),
    ...(venvDir && { venvDir }),
    forkServer:
      process.platform === "linux" &&
      variable(environment, "PRIME_AGENT_KERNEL_FORKSERVER") !== "0",
    transport,
    maxConcurrentBoots: bootLimit(variable(environment, "PRIME_AGENT_MAX_CONCURRENT_KERNEL_BOOTS")),
  };
}

/** How many kernels may boot at once: what is asked for within 1–64, else one more than there are processors. */
export function bootLimit(value: string | undefined): number {
  const asked = value !== undefined && /^\d+$/.test(value.trim()) ? Number(value) : 0;
  return asked >= 1 ? Math.min(asked, 64) : Math.max(2, navigator.hardwareConcurrency + 1);
}

/** How deep sub-agents may nest: `RLM_MAX_DEPTH`, default 1. */
export function depthLimit(environment: Environment): number {
  const value = variable(environment, "RLM_MAX_DEPTH");
  if (value === undefined) return 1;
  if (!/^\d+$/.test(value))
    throw new UsageError(`RLM_MAX_DEPTH is "${value}", but must be a whole number from 0`);
  return Number(value);
}

/**
 * A duration with an optional unit (`90`, `90s`, `5m`, `1h`, `500ms`), in milliseconds; a bare number is
 * seconds.
 *
 * @throws UsageError naming the option.
 */
export function parseDuration(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h)?$/.exec(text.trim());
  const factor = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match?.[2] ?? "s"] ?? 0;
  const ms = Number(match?.[1]) * factor;
  if (!match || ms <= 0)
    throw new UsageError(`${option} takes a duration such as 90s, 5m or 1h, not "${text}"`);
  return Math.round(ms);
}

/** A number of at least `min`, whole unless `fractions`. @throws UsageError naming the option. */
export function parseNumber(
  option: string,
  text: string,
  rules: { min: number; fractions?: boolean },
): number {
  const pattern = rules.fractions ? /^\d+(\.\d+)?$/ : /^\d+$/;
  const value = Number(text);
  if (pattern.test(text.trim()) && value >= rules.min) return value;
  const kind = rules.fractions ? "a number" : "a whole number";
  throw new UsageError(`${option} takes ${kind} of at least ${rules.min}, not "${text}"`);
}

/** What a setting must be, in words and as a test. */
const SETTINGS: Record<keyof Settings, readonly [string, (value: unknown) => boolean]> = {
  model: ["a string", isString],
  effort: ["a string", isString],
  shellPath: ["a string", isString],
  commandPrefix: ["a string", isString],
  skills: ["a list of paths", (value) => Array.isArray(value) && value.every(isString)],
  maxRetries: ["a whole number from 0", (value) => Number.isInteger(value) && Number(value) >= 0],
};

/** Reads one settings file; a missing one is empty. @throws UsageError when it is not a JSON object, or a setting is wrong. */
export function readSettings(path: string): Settings {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return {};
    throw new UsageError(`${path} can't be read: ${errorMessage(error)}`, { cause: error });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${path} is not valid JSON: ${errorMessage(error)}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new UsageError(`${path} must hold a JSON object`);
  for (const [name, [kind, isValid]] of Object.entries(SETTINGS)) {
    const setting = (value as Record<string, unknown>)[name];
    if (setting !== undefined && !isValid(setting))
      throw new UsageError(`${path}: "${name}" must be ${kind}`);
  }
  return value as Settings;
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

/** The first of `folders` that exists or can be made, and can be written; undefined when none can. */
export function firstWritable(folders: readonly string[]): string | undefined {
  return folders.find((folder) => {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.W_OK);
      return true;
    } catch {
      // The next folder is tried; the caller says when none is left.
      return false;
    }
  });
}

function currentFolder(): string | undefined {
  try {
    return process.cwd();
  } catch {
    // The folder was deleted: a value for the caller, which names it in its own message.
    return undefined;
  }
}

/** Flags, environment and settings files → one frozen {@link Config}. Precedence: flag, environment, project, user, default. */

import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import {
  depthLimit,
  kernelEnvironment,
  parseDuration,
  parseNumber,
  readEnvironment,
  readSettings,
  variable,
  type Config,
  type Environment,
  type KernelConfig,
  type LimitConfig,
  type ModelConfig,
  type OutputConfig,
  type PromptConfig,
  type SessionConfig,
  type Settings,
} from "../config.ts";
import { errorMessage, UsageError } from "../errors.ts";
import type { OptionValues } from "./arguments.ts";

const DEFAULT_MAX_RETRIES = 3;

/** Reads everything a run is told. @throws UsageError naming the option, variable or file that is wrong. */
export function readConfig(
  options: OptionValues,
  environment: Environment = readEnvironment(),
): Config {
  const cwd = workingFolder(options, environment);
  const bare = options.has("bare");
  const trustProject = options.has("trust-project");
  const settings = bare ? {} : allSettings(environment, cwd, trustProject);
  return Object.freeze({
    environment,
    cwd,
    settings,
    bare,
    model: modelConfig(options, environment),
    output: outputConfig(options, cwd),
    limits: limitConfig(options, settings),
    session: sessionConfig(options),
    prompt: promptConfig(options, settings, cwd, bare),
    kernel: kernelConfig(options, environment, settings, cwd),
    checks: options.all("check"),
    stdin: choice(options, "stdin", ["auto", "wait", "ignore"] as const) ?? "auto",
    ...defined({ script: options.get("script") }),
    offline: options.has("offline"),
    maxDepth: depthLimit(environment),
  });
}

/** The folder to work in; one that has gone is replaced by one that is there, and the kernel says so. */
function workingFolder(options: OptionValues, environment: Environment): string {
  const given = options.get("cwd");
  if (given === undefined) return environment.cwd ?? environment.userHome ?? "/";
  const path = resolve(environment.cwd ?? "/", given);
  try {
    if (statSync(path).isDirectory()) return path;
  } catch (error) {
    throw new UsageError(`the folder ${path} does not exist`, { cause: error });
  }
  throw new UsageError(`${path} is not a folder`);
}

function allSettings(environment: Environment, cwd: string, trustProject: boolean): Settings {
  const user = readSettings(join(environment.home, "settings.json"));
  return trustProject
    ? { ...user, ...readSettings(join(cwd, ".prime", "agent", "settings.json")) }
    : user;
}

/** Without the settings: between them and these comes what a resumed session was last asked with. */
function modelConfig(options: OptionValues, environment: Environment): ModelConfig {
  return defined({
    selector: options.get("model") ?? variable(environment, "PRIME_AGENT_MODEL"),
    effort: options.get("effort") ?? options.get("thinking"),
    baseUrl: options.get("base-url"),
    api: options.get("api"),
    apiKeyEnv: options.get("api-key-env"),
  });
}

function outputConfig(options: OptionValues, cwd: string): OutputConfig {
  const format = choice(options, "output-format", ["text", "json", "stream-json"] as const);
  const color = choice(options, "color", ["auto", "always", "never"] as const);
  return {
    format: format ?? (options.has("json") ? "stream-json" : "text"),
    includePartialMessages: options.has("include-partial-messages"),
    quiet: options.has("quiet"),
    verbose: options.has("verbose"),
    color: options.has("no-color") ? "never" : (color ?? "auto"),
    ...defined({
      lastMessageFile: optional(options.get("output-last-message"), (path) => resolve(cwd, path)),
    }),
  };
}

function limitConfig(options: OptionValues, settings: Settings): LimitConfig {
  const duration = (name: string) =>
    optional(options.get(name), (text) => parseDuration(`--${name}`, text));
  const count = (name: string, min: number) =>
    optional(options.get(name), (text) => parseNumber(`--${name}`, text, { min }));
  const budget = optional(options.get("max-budget-usd"), (text) =>
    parseNumber("--max-budget-usd", text, { min: 0, fractions: true }),
  );
  return {
    maxRetries: count("max-retries", 0) ?? settings.maxRetries ?? DEFAULT_MAX_RETRIES,
    ...defined({
      timeoutMs: duration("timeout"),
      maxTurns: count("max-turns", 1),
      maxTokens: count("max-tokens", 1),
      maxBudgetUsd: budget,
    }),
  };
}

function sessionConfig(options: OptionValues): SessionConfig {
  const config = {
    continueLatest: options.has("continue"),
    fork: options.has("fork"),
    save: !options.has("no-session"),
    ...defined({
      resume: options.get("resume"),
      id: options.get("session-id"),
      name: options.get("name"),
    }),
  };
  if (config.fork && !config.continueLatest && config.resume === undefined) {
    throw new UsageError("--fork needs -c or -r to say which session to copy");
  }
  return config;
}

function promptConfig(
  options: OptionValues,
  settings: Settings,
  cwd: string,
  bare: boolean,
): PromptConfig {
  const text = (name: string) =>
    options.get(name) ??
    optional(options.get(`${name}-file`), (path) => readText(`--${name}-file`, resolve(cwd, path)));
  return {
    contextFiles: !bare && !options.has("no-context-files"),
    skills: !bare && !options.has("no-skills"),
    skillPaths: [...options.all("skill"), ...(settings.skills ?? [])].map((path) =>
      resolve(cwd, expandHome(path)),
    ),
    trustProject: options.has("trust-project"),
    images: options.all("image").map((path) => resolve(cwd, path)),
    ...defined({
      systemPrompt: text("system-prompt"),
      appendSystemPrompt: text("append-system-prompt"),
      goal: options.get("goal"),
    }),
  };
}

function kernelConfig(
  options: OptionValues,
  environment: Environment,
  settings: Settings,
  cwd: string,
): KernelConfig {
  return {
    ...kernelEnvironment(environment),
    onBusy: choice(options, "on-busy", ["cancel", "restart"] as const) ?? "cancel",
    envPass: options.all("env-pass"),
    ...defined({
      // A bare name is looked for on PATH.
      python: optional(options.get("python"), (path) =>
        path.includes("/") ? resolve(cwd, expandHome(path)) : path,
      ),
      existing: optional(options.get("existing"), (path) => resolve(cwd, path)),
      shellPath: options.get("shell-path") ?? settings.shellPath,
      commandPrefix: options.get("command-prefix") ?? settings.commandPrefix,
      cellTimeoutMs: optional(options.get("cell-timeout"), (text) =>
        parseDuration("--cell-timeout", text),
      ),
    }),
  };
}

function choice<T extends string>(
  options: OptionValues,
  name: string,
  choices: readonly T[],
): T | undefined {
  const value = options.get(name);
  if (value === undefined) return undefined;
  const known = choices.find((candidate) => candidate === value);
  if (known === undefined)
    throw new UsageError(`--${name} takes ${choices.join(", ")}, not "${value}"`);
  return known;
}

function optional<T>(text: string | undefined, parse: (text: string) => T): T | undefined {
  return text === undefined ? undefined : parse(text);
}

/** The object without the keys whose value is undefined. */
function defined<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}

function readText(option: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`${option}: ${path} can't be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/**
 * argv → command, words and option values.
 *
 * The table of commands and options is registered with cac, which prints the
 * help. The words themselves are read by `node:util`'s parseArgs over the same
 * table: cac's own parser turns values into numbers (`--session-id 007`) and
 * swallows the words `true` and `false` of a prompt after a flag.
 */

import { parseArgs } from "node:util";
import { cac } from "cac";
import { UsageError } from "../errors.ts";
import { nearest } from "../nearest.ts";
import { COMMANDS, IGNORED_OPTIONS, OPTIONS, type OptionRow } from "./option-table.ts";

/** cac adds this row to the help text itself. */
const HELP: OptionRow = { flags: "-h, --help", help: "" };
const IGNORED = IGNORED_OPTIONS.map((flags): OptionRow => ({ flags, help: "" }));

/** argv, taken apart. */
export interface Arguments {
  /** A command's name, "help" for that word alone, or "" for a prompt without a command. */
  command: string;
  /** The words after the command. */
  words: string[];
  /** Option values by long name without dashes. */
  options: OptionValues;
}

/** Option values; what was not given is absent. */
export class OptionValues {
  readonly #values: ReadonlyMap<string, readonly string[]>;

  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.#values = values;
  }

  /** Whether the option was given. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The last value; "" for an option given without one. */
  get(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** The same values with one more. */
  with(name: string, value: string): OptionValues {
    return new OptionValues(new Map([...this.#values, [name, [value]]]));
  }

  /** Every value of a repeatable option. */
  all(name: string): string[] {
    return [...(this.#values.get(name) ?? [])];
  }
}

interface Spec {
  long: string;
  short?: string;
  value: "none" | "required" | "optional";
}

/**
 * Takes argv (without program and script) apart.
 *
 * @throws UsageError naming the nearest option for an unknown one, or the option whose value is missing.
 */
export function parseArguments(argv: readonly string[]): Arguments {
  const specs = [...OPTIONS, HELP, ...IGNORED].map(specOf);
  const { tokens } = parseArgs({
    args: withoutStolenOptions(argv, specs),
    strict: false,
    allowPositionals: true,
    tokens: true,
    options: Object.fromEntries(
      specs.map(({ long, short, value }) => [
        long,
        {
          type: value === "none" ? ("boolean" as const) : ("string" as const),
          ...(short && { short }),
        },
      ]),
    ),
  });
  const values = new Map<string, string[]>();
  const words: string[] = [];
  let command: string | undefined;
  let terminated = false;
  for (const token of tokens) {
    if (token.kind === "option-terminator") {
      terminated = true;
    } else if (token.kind === "positional") {
      if (command === undefined && words.length === 0 && !terminated) {
        // Behind -p, which means exec, every word belongs to the prompt.
        command = values.has("print") ? "" : (commandNamed(token.value) ?? "");
        if (command) continue;
      }
      words.push(token.value);
    } else {
      takeOption(token, specs, values);
    }
  }
  if (command === "" && !values.has("print")) {
    if (words.length === 1 && words[0] === "help") command = "help";
    else checkMistyped(words);
  }
  return { command: command ?? "", words, options: new OptionValues(values) };
}

/** An option whose value may be left out takes no option for it: `-r --json` is two of them. */
function withoutStolenOptions(argv: readonly string[], specs: readonly Spec[]): string[] {
  const optional = specs.filter(({ value }) => value === "optional");
  const end = argv.indexOf("--");
  return argv.map((arg, index) => {
    const spec = optional.find((candidate) => isSpelling(candidate, arg));
    const isAlone = spec && (end < 0 || index < end) && /^-./.test(argv[index + 1] ?? "");
    return isAlone ? `--${spec.long}=` : arg;
  });
}

/** A prompt that looks like a mistyped command is not sent. @throws UsageError naming the command. */
function checkMistyped(words: readonly string[]): void {
  const [word = "", action] = words;
  const names = COMMANDS.map(({ usage }) => usage.split(" ", 1)[0] as string);
  const isShort = words.length === 1 || (words.length <= 3 && ACTIONS.includes(action ?? ""));
  const [match] = isShort ? nearest(word, names, 1, MISTYPED_SHARE) : [];
  if (match === undefined) return;
  throw new UsageError(`there is no command "${word}"`, {
    hint: `Did you mean ${match}? For a prompt: prime-agent -- ${words.join(" ")}`,
  });
}

/** So much of a command's name can be mistyped. */
const MISTYPED_SHARE = 1 / 3;

/** What follows the commands that take an action. */
const ACTIONS = ["list", "show", "export", "path", "rm", "status", "set"];

/** The help text, as cac lays it out. */
export function helpText(version: string): string {
  const program = cac("prime-agent");
  program.usage("[options] [prompt…]");
  for (const { usage, help } of COMMANDS) program.command(usage, help);
  for (const { flags, help } of OPTIONS) program.option(flags, help);
  for (const example of EXAMPLES) program.example(example);
  let text = "";
  program.help((sections) => {
    const shown = sections.filter(({ title }) => !title?.startsWith("For more info"));
    // cac puts a default on every negated flag, which reads as its opposite.
    const tidy = (body: string) => body.replaceAll(" (default: true)", "").replace(/[ \t]+$/gm, "");
    text = shown
      .map(({ title, body }) => (title ? `${title}:\n${tidy(body)}` : `prime-agent ${version}`))
      .join("\n\n");
    return [];
  });
  const print = console.info;
  console.info = () => undefined;
  try {
    program.outputHelp();
  } finally {
    console.info = print;
  }
  return `${text}\n`;
}

const EXAMPLES = [
  '  prime-agent "explain the failing test"          chat in a terminal, started with a prompt',
  '  prime-agent -p "fix the typo in README" --json  headless, one JSON event a line',
  "  git diff | prime-agent -p 'review this'         the piped text goes with the prompt",
  "  prime-agent cell 'x = 20' 'x + 22'              cells without a model",
  "  prime-agent -- sessions are slow                a prompt that begins like a command",
];

function takeOption(
  token: {
    name: string;
    rawName: string;
    value?: string | undefined;
    inlineValue?: boolean | undefined;
  },
  specs: readonly Spec[],
  values: Map<string, string[]>,
): void {
  const spec = specs.find(({ long }) => long === token.name);
  if (!spec) throw unknownOption(token.rawName, specs);
  if (spec.value === "none" && token.value !== undefined) {
    throw new UsageError(`--${spec.long} takes no value`);
  }
  const isOption = !token.inlineValue && specs.some((other) => isSpelling(other, token.value));
  if (spec.value === "required" && (token.value === undefined || isOption)) {
    throw new UsageError(`${token.rawName} needs a value`);
  }
  const given = values.get(spec.long) ?? [];
  values.set(spec.long, [...given, token.value ?? ""]);
}

function isSpelling({ long, short }: Spec, word: string | undefined): boolean {
  return word === `--${long}` || (short !== undefined && word === `-${short}`);
}

function unknownOption(rawName: string, specs: readonly Spec[]): UsageError {
  const names = specs.flatMap(({ long, short }) => [`--${long}`, ...(short ? [`-${short}`] : [])]);
  const [match] = nearest(rawName, names);
  const hint = match ? `did you mean ${match}?` : "see prime-agent --help";
  return new UsageError(`unknown option ${rawName}`, { hint });
}

function commandNamed(word: string): string | undefined {
  for (const { usage, aliases } of COMMANDS) {
    const name = usage.split(" ", 1)[0] as string;
    if (name === word || aliases?.includes(word)) return name;
  }
  return undefined;
}

function specOf({ flags }: OptionRow): Spec {
  const long = /--([\w-]+)/.exec(flags)?.[1] as string;
  const short = /^-(\w),/.exec(flags)?.[1];
  const value = flags.includes("<") ? "required" : flags.includes("[") ? "optional" : "none";
  return { long, ...(short && { short }), value };
}

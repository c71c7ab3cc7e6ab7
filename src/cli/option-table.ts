/** Every command and option, as data: what is parsed and what `--help` prints come from here. */

/** One option: `flags` in cac's notation, the help text, and the commands it belongs to (absent: all that run a prompt). */
export interface OptionRow {
  flags: string;
  help: string;
  commands?: readonly string[];
  /** Can be given more than once. */
  repeatable?: boolean;
}

/** One command: its name with arguments in cac's notation, and the help text. */
export interface CommandRow {
  usage: string;
  help: string;
  aliases?: readonly string[];
}

/** The commands in the order of the help text. */
export const COMMANDS: readonly CommandRow[] = [
  {
    usage: "exec [...prompt]",
    help: "One headless run, then exit (also -p, --print)",
    aliases: ["run"],
  },
  { usage: "cell [...code]", help: "Run cells through the tool, without a model" },
  { usage: "resume [session]", help: "Go on with a saved session" },
  {
    usage: "sessions <action> [...session]",
    help: "list, show, export, path or rm saved sessions",
  },
  { usage: "models [search]", help: "Models that can be used now" },
  { usage: "skills <action>", help: "list: the skills found here" },
  { usage: "auth <action> [provider]", help: "status, set or rm: provider credentials" },
  { usage: "setup", help: "Build the kernel's Python environment ahead of time" },
  { usage: "doctor", help: "What is there, what is missing, how to mend it" },
  { usage: "demo", help: "The whole loop on a scripted offline model and a real kernel" },
  { usage: "update [version]", help: "Replace this program by a released version, verified" },
  { usage: "version", help: "The version; --json for the build's facts" },
];

/** The options in the order of the help text. */
export const OPTIONS: readonly OptionRow[] = [
  { flags: "-p, --print", help: "Run headless: the answer on stdout, then exit" },
  { flags: "-f, --prompt-file <file>", help: "Read the prompt from a file" },
  { flags: "-m, --model <provider/id>", help: "The model that answers" },
  {
    flags: "--effort <level>",
    help: "How hard it thinks: off, minimal, low, medium, high, xhigh, max",
  },
  { flags: "--thinking <level>", help: "The same as --effort" },
  { flags: "--base-url <url>", help: "Where the provider's API is" },
  {
    flags: "--api <kind>",
    help: "Its format: openai-completions, openai-responses, anthropic-messages, google-generative-ai",
  },
  { flags: "--api-key-env <name>", help: "The variable that holds the key" },
  { flags: "-o, --output-format <format>", help: "text (default), json or stream-json" },
  { flags: "--json", help: "The same as --output-format stream-json" },
  { flags: "--include-partial-messages", help: "stream-json: text and output as they come, too" },
  { flags: "--output-last-message <file>", help: "Write the final answer into a file as well" },
  { flags: "-q, --quiet", help: "On stderr, only errors" },
  { flags: "-v, --verbose", help: "On stderr, diagnostics too" },
  { flags: "--color <when>", help: "auto (default), always or never" },
  { flags: "--no-color", help: "The same as --color never" },
  { flags: "--timeout <duration>", help: "End the run after this long (90s, 5m, 1h)" },
  {
    flags: "--cell-timeout <duration>",
    help: "Interrupt each cell after this long (default: never)",
  },
  { flags: "--max-turns <n>", help: "End after this many turns" },
  { flags: "--max-tokens <n>", help: "End after this many tokens, input and output" },
  { flags: "--max-budget-usd <x>", help: "End after spending this much, if the price is known" },
  { flags: "--max-retries <n>", help: "Retries of a failed request (default 3)" },
  {
    flags: "--check <command>",
    help: "Must pass before success; its output goes back to the model",
    repeatable: true,
  },
  { flags: "-c, --continue", help: "Go on with the latest session of this folder" },
  { flags: "-r, --resume [id|path]", help: "Go on with a session; without an id, the latest one" },
  { flags: "--fork", help: "With -c or -r: go on in a copy" },
  { flags: "--session-id <uuid>", help: "The id of the new session" },
  { flags: "-n, --name <name>", help: "A name for the session" },
  { flags: "--no-session", help: "Save nothing" },
  { flags: "-C, --cwd <dir>", help: "Work in this folder" },
  { flags: "--system-prompt <text>", help: "Replace the system prompt" },
  { flags: "--system-prompt-file <file>", help: "The same, from a file" },
  { flags: "--append-system-prompt <text>", help: "Add to the system prompt" },
  { flags: "--append-system-prompt-file <file>", help: "The same, from a file" },
  { flags: "--goal <objective>", help: "Work until the goal is complete" },
  { flags: "--bare", help: "Nothing that was not named: no context files, skills or settings" },
  { flags: "--no-context-files", help: "Do not read AGENTS.md or CLAUDE.md" },
  { flags: "--no-skills", help: "Use no skills" },
  { flags: "--skill <path>", help: "Use the skill in this folder", repeatable: true },
  { flags: "--trust-project", help: "Let the project's settings and Python skills run code" },
  { flags: "-i, --image <file>", help: "Show an image with the prompt", repeatable: true },
  {
    flags: "--on-busy <choice>",
    help: "A cell that can't be interrupted: cancel (default) or restart the kernel",
  },
  { flags: "--shell-path <path>", help: "The shell of %%bash cells" },
  { flags: "--command-prefix <text>", help: "Goes before each %%bash cell's body" },
  { flags: "--python <path>", help: "Build the kernel's environment with this Python" },
  { flags: "--existing <file>", help: "Use the running Jupyter kernel of this connection file" },
  { flags: "--env-pass <name>", help: "Let cells see this credential variable", repeatable: true },
  { flags: "--stdin <mode>", help: "auto (default), wait or ignore" },
  { flags: "--offline", help: "Make no request but to this machine" },
  {
    flags: "--script <file>",
    help: "Answer from a script of replies instead of a model (tests, demos)",
  },
  {
    flags: "--packages <list>",
    help: "setup: packages to add, separated by commas",
    commands: ["setup"],
  },
  {
    flags: "--format <format>",
    help: "sessions export: markdown (default) or html",
    commands: ["sessions"],
  },
  { flags: "--all", help: "sessions list: of every folder", commands: ["sessions"] },
  {
    flags: "--yolo",
    help: "Accepted without effect (also --full-auto, --dangerously-skip-permissions)",
  },
  { flags: "-V, --version", help: "The version" },
];

/** Accepted without effect, since people's scripts carry them; not worth a line of help each. */
export const IGNORED_OPTIONS = ["--full-auto", "--dangerously-skip-permissions"] as const;

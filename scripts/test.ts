/** Runs the checks in order, goes on after a failure, and adds up what passed and failed. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { bunFailures, lastLines, pythonFailures } from "./lib/failures";

const ROOT = join(import.meta.dir, "..");
const TEST_TIMEOUT_MS = 120_000;

/** What a step counted. */
interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  /** What was printed for each failure; told once more at the end. */
  failures: string[];
}

interface Step {
  name: string;
  run(): Promise<Tally>;
}

const STEPS: readonly Step[] = [
  { name: "types", run: () => single("bun", "check") },
  { name: "format", run: () => single("bun", "fmt", "--check", "src", "test", "scripts") },
  { name: "unit", run: () => bunTests("test/unit") },
  { name: "kernel", run: () => pythonTests("oldest", "newest") },
  { name: "integration", run: () => bunTests("test/integration") },
  { name: "e2e", run: () => endToEnd() },
];

/** Runs a command with its output shown; resolves with its exit code and output. */
async function command(args: readonly string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn([...args], {
    cwd: ROOT,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: process.env,
  });
  let output = "";
  const show = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      output += text;
      process.stdout.write(text);
    }
  };
  await Promise.all([show(child.stdout), show(child.stderr)]);
  return { code: await child.exited, output };
}

function nothing(): Tally {
  return { passed: 0, failed: 0, skipped: 0, failures: [] };
}

/** A run that ends badly without naming a failed test, such as an error while loading. */
function oneFailure(what: string, output: string): Tally {
  return { ...nothing(), failed: 1, failures: [`${what}\n${lastLines(output)}`] };
}

function add(sum: Tally, tally: Tally): void {
  sum.passed += tally.passed;
  sum.failed += tally.failed;
  sum.skipped += tally.skipped;
  sum.failures.push(...tally.failures);
}

/** A step that either passes or fails. */
async function single(...args: string[]): Promise<Tally> {
  const { code, output } = await command(args);
  return code === 0 ? { ...nothing(), passed: 1 } : oneFailure(args.join(" "), output);
}

async function bunTests(folder: string): Promise<Tally> {
  const { code, output } = await command([
    "bun",
    "test",
    `./${folder}/`,
    `--timeout=${TEST_TIMEOUT_MS}`,
  ]);
  const count = (what: string) =>
    Number(new RegExp(`^ *(\\d+) ${what}$`, "m").exec(output)?.[1] ?? 0);
  const tally = {
    passed: count("pass"),
    failed: count("fail"),
    skipped: count("skip"),
    failures: bunFailures(output),
  };
  if (code !== 0 && tally.failures.length === 0) add(tally, oneFailure(folder, output));
  return tally;
}

async function pythonTests(...environments: string[]): Promise<Tally> {
  const sum = nothing();
  for (const environment of environments) {
    const python = `.cache/python/${environment}/bin/python`;
    console.log(`\n-- ${environment}`);
    const { code, output } = await command([
      python,
      "-m",
      "unittest",
      "discover",
      "-s",
      "test/kernel",
    ]);
    const ran = Number(/^Ran (\d+) tests?/m.exec(output)?.[1] ?? 0);
    const count = (what: string) => Number(new RegExp(`\\b${what}=(\\d+)`).exec(output)?.[1] ?? 0);
    const failed = count("failures") + count("errors");
    const skipped = count("skipped");
    const failures = pythonFailures(output).map((text) => `${environment}: ${text}`);
    add(sum, { passed: ran - failed - skipped, failed, skipped, failures });
    if (code !== 0 && failures.length === 0) add(sum, oneFailure(environment, output));
  }
  return sum;
}

async function endToEnd(): Promise<Tally> {
  const build = await single("./scripts/build");
  if (build.failed > 0 || !existsSync(join(ROOT, "test/e2e"))) return build;
  const sum = await bunTests("test/e2e");
  add(sum, build);
  return sum;
}

/** Tests must not see settings of the person who runs them. */
function cleanEnvironment(): void {
  for (const name of Object.keys(process.env)) {
    if (/^(PRIME_AGENT_|RLM_)|_API_KEY$|_BASE_URL$/.test(name)) delete process.env[name];
  }
}

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !STEPS.some((step) => step.name === name));
if (unknown.length > 0) {
  console.error(
    `unknown step ${unknown.join(", ")}; there are ${STEPS.map((step) => step.name).join(", ")}`,
  );
  process.exit(2);
}
cleanEnvironment();
const sum = nothing();
for (const setUp of ["./scripts/test-machine", "./scripts/test-env"]) {
  const { code, output } = await command([setUp]);
  if (code !== 0) add(sum, oneFailure(setUp, output));
}
for (const step of STEPS) {
  if (asked.length > 0 && !asked.includes(step.name)) continue;
  console.log(`\n== ${step.name}`);
  const started = performance.now();
  const tally = await step.run();
  add(sum, tally);
  console.log(
    `-- ${step.name}: ${tally.passed} passed, ${tally.failed} failed, ${Math.round((performance.now() - started) / 1000)} s`,
  );
}
for (const failure of sum.failures) console.log(`\n== failed\n${failure}`);
if (sum.skipped > 0) {
  console.log(
    `\n${sum.skipped} tests were skipped${process.env["CI"] ? ", which CI counts as failures" : ""}`,
  );
  if (process.env["CI"]) sum.failed += sum.skipped;
}
console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
process.exit(sum.failed === 0 ? 0 : 1);

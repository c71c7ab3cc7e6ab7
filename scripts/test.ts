/** Runs the checks in order, goes on after a failure, and adds up what passed and failed. */

import { existsSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..");
const TEST_TIMEOUT_MS = 120_000;

/** What a step counted. */
interface Tally {
  passed: number;
  failed: number;
  skipped: number;
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

/** A step that either passes or fails. */
async function single(...args: string[]): Promise<Tally> {
  const { code } = await command(args);
  return { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
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
  const tally = { passed: count("pass"), failed: count("fail"), skipped: count("skip") };
  // A run that ends badly without a failed test, such as an error while loading, is a failure too.
  return code !== 0 && tally.failed === 0 ? { ...tally, failed: 1 } : tally;
}

async function pythonTests(...environments: string[]): Promise<Tally> {
  const sum: Tally = { passed: 0, failed: 0, skipped: 0 };
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
    sum.failed += code !== 0 && failed === 0 ? 1 : failed;
    sum.skipped += skipped;
    sum.passed += ran - failed - skipped;
  }
  return sum;
}

async function endToEnd(): Promise<Tally> {
  const build = await single("./scripts/build");
  if (build.failed > 0 || !existsSync(join(ROOT, "test/e2e"))) return build;
  const tests = await bunTests("test/e2e");
  return { ...tests, passed: tests.passed + build.passed };
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
const sum: Tally = { passed: 0, failed: 0, skipped: 0 };
for (const setUp of ["./scripts/test-machine", "./scripts/test-env"]) {
  if ((await command([setUp])).code !== 0) sum.failed += 1;
}
for (const step of STEPS) {
  if (asked.length > 0 && !asked.includes(step.name)) continue;
  console.log(`\n== ${step.name}`);
  const started = performance.now();
  const tally = await step.run();
  sum.passed += tally.passed;
  sum.failed += tally.failed;
  sum.skipped += tally.skipped;
  console.log(
    `-- ${step.name}: ${tally.passed} passed, ${tally.failed} failed, ${Math.round((performance.now() - started) / 1000)} s`,
  );
}
if (sum.skipped > 0) {
  console.log(
    `\n${sum.skipped} tests were skipped${process.env["CI"] ? ", which CI counts as failures" : ""}`,
  );
  if (process.env["CI"]) sum.failed += sum.skipped;
}
console.log(`\n${sum.passed} passed, ${sum.failed} failed`);
process.exit(sum.failed === 0 ? 0 : 1);

/** Compiles one executable: our code, Bun, the Python side and the carried wheels. */

import { chmod, cp, mkdir, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { AssetsDescription } from "../../src/kernel/assets.ts";
import { packWheels } from "./carried-wheels.ts";
import { type Target } from "./targets.ts";
import { REPOSITORY, sha256 } from "./wheel-lock.ts";

/** Where Buns for other machines are kept between builds. */
const RUNTIME_CACHE = join(REPOSITORY, ".cache/bun");

/** How to build. */
export interface ExecutableOptions {
  readonly target: Target;
  readonly outfile: string;
  /** Absolute path of the program's first module. */
  readonly entry: string;
  /** Whether this machine is of the target's kind: then the Bun that runs this is used. */
  readonly native: boolean;
  /** Where `prime-agent update` looks for releases; nowhere by default. */
  readonly releaseUrl?: string;
}

/** Builds `outfile`, replacing it only when all went well. */
export async function buildExecutable(options: ExecutableOptions): Promise<void> {
  const stage = await mkdtemp(join(tmpdir(), "prime-agent-build-"));
  try {
    await stageAssets(stage, await packWheels(options.target.platform));
    const built = join(stage, "prime-agent");
    await run(stage, [
      ...[process.execPath, "build", "--compile", "--minify", "--bytecode"],
      // Chunks: a command loads its own code and no other.
      ...["--format", "esm", "--splitting"],
      ...["--no-compile-autoload-dotenv", "--no-compile-autoload-bunfig"],
      // Only running from source needs it, and the builder's paths are nobody's business.
      ...["--define", 'import.meta.dir="/"'],
      ...["--define", `RELEASE_URL=${JSON.stringify(options.releaseUrl ?? "")}`],
      ...(options.native ? [] : await crossOptions(options.target)),
      ...["--asset", "kernel", "--asset", "carried", "--outfile", built, options.entry],
    ]);
    await mkdir(dirname(options.outfile), { recursive: true });
    await chmod(built, 0o755);
    // Beside, then renamed: a running executable can't be written to, and a half one is never seen.
    const beside = `${options.outfile}.new-${process.pid}`;
    await cp(built, beside);
    await rename(beside, options.outfile);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** Only what git knows or would add: no compiled files, no editor's leavings. */
async function stageAssets(stage: string, wheels: string): Promise<void> {
  const list = await run(REPOSITORY, [
    ...["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "kernel"],
  ]);
  for (const path of list.split("\0").filter((name) => name !== "")) {
    if (!(await Bun.file(join(REPOSITORY, path)).exists())) continue;
    await cp(join(REPOSITORY, path), join(stage, path));
  }
  await mkdir(join(stage, "carried"));
  for (const name of ["wheels.json", "wheels.tar.zst"]) {
    await Bun.write(join(stage, "carried", name), Bun.file(join(wheels, name)));
  }
  const description = await describe(stage);
  await Bun.write(join(stage, "carried/assets.json"), JSON.stringify(description));
}

/** The list that the executable compares its files with. */
async function describe(stage: string): Promise<AssetsDescription> {
  const paths = (await readdir(stage, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(stage.length + 1))
    .sort();
  const files = await Promise.all(
    paths.map(async (path) => {
      const bytes = await Bun.file(join(stage, path)).bytes();
      const executable = ((await stat(join(stage, path))).mode & 0o100) !== 0;
      return { path, size: bytes.length, sha256: sha256(bytes), ...(executable && { executable }) };
    }),
  );
  const kernel = files.filter((file) => file.path.startsWith("kernel/"));
  const text = kernel.map((file) => `${file.path} ${file.sha256}\n`).join("");
  return { hash: sha256(Buffer.from(text)).slice(0, 16), files };
}

async function crossOptions(target: Target): Promise<string[]> {
  const runtime = await fetchRuntime(target);
  return [`--target=${target.bunPackage}`, "--compile-executable-path", runtime];
}

/** The Bun of another kind of machine, of the version that runs this, from the npm registry. */
async function fetchRuntime(target: Target): Promise<string> {
  const folder = join(RUNTIME_CACHE, `${target.bunPackage}-${Bun.version}`);
  const runtime = join(folder, "bun");
  if (await Bun.file(runtime).exists()) return runtime;
  const name = `@oven/${target.bunPackage}`;
  console.error(`build: fetching ${name}@${Bun.version}`);
  const stage = `${folder}.new-${process.pid}`;
  await mkdir(stage, { recursive: true });
  try {
    // --force: npm refuses packages for other machines, and this one is wanted for its file alone.
    const options = [
      "--silent",
      "--no-save",
      "--ignore-scripts",
      "--no-audit",
      "--no-fund",
      "--force",
    ];
    await run(stage, ["npm", "install", ...options, "--prefix", stage, `${name}@${Bun.version}`]);
    await rm(folder, { recursive: true, force: true });
    await rename(join(stage, "node_modules", name, "bin"), folder);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
  return runtime;
}

/** Runs a command and gives its stdout; its stderr is shown when it fails. */
export async function run(cwd: string, command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.slice(0, 3).join(" ")}… exited with ${code}:\n${err}`);
  return out;
}

/** Makes the folder that a release server serves: archives, checksums, manifest, installer. */

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable, run } from "./executable.ts";
import { collectLicences } from "./licences.ts";
import { writeTar } from "./tar.ts";
import { hostTarget, targetNamed } from "./targets.ts";
import { REPOSITORY, sha256 } from "./wheel-lock.ts";

/** What to release. */
export interface ReleaseOptions {
  readonly version: string;
  /** Names out of `TARGETS`. */
  readonly targets: readonly string[];
  /** The folder that a server serves; `<version>/` is made below it. */
  readonly folder: string;
  /** Where that server will be; becomes the installer's default. */
  readonly url: string;
  /** 0 (fast) to 9 (small). */
  readonly compression: number;
  /** Builds the executable of a target at `outfile`; the default compiles it. */
  readonly build?: (target: string, outfile: string) => Promise<void>;
}

/** One archive, as the manifest describes it; sizes in bytes. */
export interface ReleasedArchive {
  readonly target: string;
  readonly file: string;
  readonly size: number;
  readonly sha256: string;
  /** Of the executable inside. */
  readonly executableSize: number;
  readonly executableSha256: string;
  /** Share of the executable that the carried wheels take. */
  readonly wheelsSize: number;
}

/** Makes `<folder>/<version>/`, then `<folder>/latest` and `<folder>/install.sh`. */
export async function makeRelease(options: ReleaseOptions): Promise<ReleasedArchive[]> {
  const folder = join(options.folder, options.version);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  const archives: ReleasedArchive[] = [];
  for (const target of options.targets) archives.push(await makeArchive(target, folder, options));
  const sums = archives.map((archive) => `${archive.sha256}  ${archive.file}\n`).join("");
  await Bun.write(join(folder, "SHA256SUMS"), sums);
  const manifest = { version: options.version, archives };
  await Bun.write(join(folder, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const installer = await Bun.file(join(REPOSITORY, "scripts/install.sh")).text();
  await Bun.write(
    join(options.folder, "install.sh"),
    installer.replace(/^default_url=$/m, `default_url=${options.url}`),
  );
  // Last: whoever reads it finds everything of that version.
  await Bun.write(join(options.folder, "latest"), `${options.version}\n`);
  return archives;
}

/** The name of a target's archive; `scripts/install.sh` makes the same one. */
export function archiveName(version: string, target: string): string {
  return `prime-agent-${version}-${target}.tar.xz`;
}

async function makeArchive(
  name: string,
  folder: string,
  options: ReleaseOptions,
): Promise<ReleasedArchive> {
  const { platform } = targetNamed(name);
  const stage = await mkdtemp(join(tmpdir(), "prime-agent-release-"));
  try {
    const build = options.build ?? ((target, outfile) => compile(target, outfile, options.url));
    await build(name, join(stage, "prime-agent"));
    const executable = await Bun.file(join(stage, "prime-agent")).bytes();
    const tar = writeTar([
      { path: "LICENSE", data: await Bun.file(join(REPOSITORY, "LICENSE")).bytes() },
      { path: "LICENSES-carried.txt", data: Buffer.from(await collectLicences(platform)) },
      { path: "prime-agent", data: executable, executable: true },
    ]);
    const file = archiveName(options.version, name);
    await Bun.write(join(stage, "archive.tar"), tar);
    // CRC32 and no processor filter: small decoders know nothing else. SHA256SUMS is the real check.
    const level = options.compression === 9 ? "-9e" : `-${options.compression}`;
    await run(stage, ["xz", level, "--threads=1", "--check=crc32", "archive.tar"]);
    const packed = await Bun.file(join(stage, "archive.tar.xz")).bytes();
    await Bun.write(join(folder, file), packed);
    const wheels = Bun.file(join(REPOSITORY, ".cache/wheels", platform, "wheels.tar.zst"));
    return {
      target: name,
      file,
      size: packed.length,
      sha256: sha256(packed),
      executableSize: executable.length,
      executableSha256: sha256(executable),
      wheelsSize: wheels.size,
    };
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

async function compile(name: string, outfile: string, releaseUrl: string): Promise<void> {
  const target = targetNamed(name);
  await run(REPOSITORY, [join(REPOSITORY, "scripts/fetch-wheels"), target.platform]);
  await buildExecutable({
    target,
    outfile,
    entry: join(REPOSITORY, "src/main.ts"),
    native: name === hostTarget(),
    releaseUrl,
  });
}

/** Builds the release of the current version for all targets, or for those that are named. */

import { join } from "node:path";
import { makeRelease } from "./lib/release.ts";
import { TARGETS } from "./lib/targets.ts";
import { REPOSITORY } from "./lib/wheel-lock.ts";

const MAX_DOWNLOAD_BYTES = 50e6;

const named = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const url = process.argv.find((argument) => argument.startsWith("--url="))?.slice("--url=".length);
const { version } = await Bun.file(join(REPOSITORY, "package.json")).json();

const archives = await makeRelease({
  version,
  targets: named.length > 0 ? named : Object.keys(TARGETS),
  folder: join(REPOSITORY, "dist/release"),
  url: url ?? "",
  compression: 9,
});

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
for (const { target, size, executableSize, wheelsSize } of archives) {
  const parts = `executable ${megabytes(executableSize)}, of which wheels ${megabytes(wheelsSize)}`;
  console.log(`${target.padEnd(24)} ${megabytes(size).padStart(8)}  (${parts})`);
}
const tooLarge = archives.filter((archive) => archive.size > MAX_DOWNLOAD_BYTES);
if (tooLarge.length > 0) {
  throw new Error(
    `over ${megabytes(MAX_DOWNLOAD_BYTES)}: ${tooLarge.map((a) => a.file).join(", ")}`,
  );
}

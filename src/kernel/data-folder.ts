/**
 * Where this program keeps what it makes for itself: its home folder, else the
 * user's data folder, else a private folder for temporary files. A home that
 * is missing or read-only is common in containers and must not end a run.
 */

import { lstatSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { debug } from "../log.ts";
import { NoWritableFolderError } from "./environment-errors.ts";

/** What decides where data goes. Values, not lookups: the caller reads the environment. */
export interface DataFolderOptions {
  /** The program's own home, `~/.prime/agent` by default; need not exist. */
  readonly home: string;
  /** The process environment; `XDG_DATA_HOME`, `HOME` and `TMPDIR` matter. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The folders for data, best first; none needs to exist. */
export function dataFolders(options: DataFolderOptions): string[] {
  const { env, home } = options;
  const dataHome = env["XDG_DATA_HOME"] || (env["HOME"] && join(env["HOME"], ".local/share"));
  return [
    home,
    ...(dataHome ? [join(dataHome, "prime/agent")] : []),
    join(env["TMPDIR"] || "/tmp", `prime-agent-${process.getuid?.() ?? 0}`),
  ];
}

/**
 * The first of {@link dataFolders} that can be written to, created if need be (mode 0700).
 *
 * @throws NoWritableFolderError when none can.
 */
export function writableDataFolder(purpose: string, options: DataFolderOptions): string {
  const folders = dataFolders(options);
  let cause: unknown;
  for (const folder of folders) {
    try {
      prepareDataFolder(folder);
      return folder;
    } catch (error) {
      debug("kernel", `cannot keep ${purpose} in ${folder}`, error);
      cause = error;
    }
  }
  throw new NoWritableFolderError(purpose, folders, cause);
}

/** Makes `folder` (mode 0700, if it is new) and throws when it can't be written to or trusted. */
export function prepareDataFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if ((statSync(dirname(folder)).mode & 0o002) !== 0) assertPrivate(folder);
  // Trying is the only test that read-only mounts, quotas and access lists do not fool.
  const probe = join(folder, `.write-${process.pid}`);
  writeFileSync(probe, "");
  rmSync(probe);
}

/** In a folder for all, anybody may have made one of our name first, to plant Python files in it. */
function assertPrivate(folder: string): void {
  const status = lstatSync(folder);
  const own = status.isDirectory() && status.uid === (process.getuid?.() ?? status.uid);
  if (!own || (status.mode & 0o022) !== 0) throw new Error(`${folder} is not private to this user`);
}

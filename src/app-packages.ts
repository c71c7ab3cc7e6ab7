/** What the kernel's Python is and has, as far as that can be read without running it. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "./config.ts";
import { dataFolders } from "./kernel/data-folder.ts";
import { isUnchanged, readStamp } from "./kernel/environment-stamp.ts";
import { debug } from "./log.ts";

/** A Python for the prompt to tell of. */
export interface KnownPython {
  version: string;
  /** Names of distributions, as in `pip list`. */
  packages: string[];
}

/** The managed environment's Python; undefined before it is built, and for somebody else's Python. */
export function knownPython({ kernel, environment }: Config): KnownPython | undefined {
  if (kernel.pythonOverride !== undefined || kernel.existing !== undefined) return undefined;
  const { home, variables } = environment;
  const managed = dataFolders({ home, env: variables }).map((folder) =>
    join(folder, "kernel-venv"),
  );
  for (const venv of kernel.venvDir === undefined ? managed : [kernel.venvDir, ...managed]) {
    const stamp = readStamp(venv);
    if (stamp && isUnchanged(venv, stamp))
      return { version: stamp.version, packages: installedIn(stamp.sitePackages) };
  }
  return undefined;
}

/** The distributions whose metadata lie in `folder`. */
function installedIn(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((name) => /^(.+?)-[^-]+\.dist-info$/.exec(name)?.[1] ?? []);
  } catch (error) {
    debug("app", `${folder} can't be read`, error);
    return [];
  }
}

/** What can go wrong while the Python environment is found or built. */

import { PrimeAgentError } from "../errors.ts";

/** No Python of a supported version was found. `seen` lists what was found instead, one line each. */
export class NoPythonError extends PrimeAgentError {
  readonly seen: readonly string[];

  constructor(seen: readonly string[]) {
    const found = seen.length > 0 ? ` Found instead:\n${indent(seen)}` : "";
    super("no_python", `No Python 3.10 or newer was found.${found}`, {
      hint: "install Python 3.10 or newer (for example `apt install python3`) or uv, or name one with --python or PRIME_AGENT_KERNEL_PYTHON",
    });
    this.seen = seen;
  }
}

/** A Python that was named by the user can't be used. `problems` holds every reason, one line each. */
export class UnusablePythonError extends PrimeAgentError {
  readonly python: string;
  readonly problems: readonly string[];

  constructor(origin: string, python: string, problems: readonly string[], hint: string) {
    super("unusable_python", `${origin} is ${python}, which can't be used:\n${indent(problems)}`, {
      hint,
    });
    this.python = python;
    this.problems = problems;
  }
}

/** Every way to build the environment failed. `attempts` holds one line for each. */
export class EnvironmentBuildError extends PrimeAgentError {
  readonly attempts: readonly string[];

  constructor(folder: string, attempts: readonly string[], options: { cause?: unknown } = {}) {
    super(
      "environment_build",
      `The Python environment ${folder} could not be built:\n${indent(attempts)}`,
      {
        hint: "check the network or proxy and free space and try again, or set PRIME_AGENT_KERNEL_PYTHON to a Python with ipykernel and dill",
        cause: options.cause,
      },
    );
    this.attempts = attempts;
  }
}

/** Packages that the user asked for could not be installed; the environment itself works. */
export class PackageInstallError extends PrimeAgentError {
  constructor(packages: readonly string[], reason: string) {
    super("package_install", `Could not install ${packages.join(", ")}: ${reason}`, {
      hint: "check the names and that the package index can be reached, then run setup again",
    });
  }
}

/** Another live process has been building the environment for too long. */
export class EnvironmentLockedError extends PrimeAgentError {
  constructor(lockFile: string, owner: string, waitedMs: number) {
    super(
      "environment_locked",
      `Waited ${Math.round(waitedMs / 1000)} s for ${owner}, which is building the Python environment.`,
      { hint: `end that process, or remove ${lockFile} if it does something else` },
    );
  }
}

/** No folder can be written to. `folders` are those that were tried. */
export class NoWritableFolderError extends PrimeAgentError {
  constructor(purpose: string, folders: readonly string[], cause: unknown) {
    super(
      "no_writable_folder",
      `No folder for ${purpose} can be written to: ${folders.join(", ")}`,
      {
        hint: "set PRIME_AGENT_HOME or TMPDIR to a writable folder",
        cause,
      },
    );
  }
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}`).join("\n");
}

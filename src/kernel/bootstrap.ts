/** The bootstrap cell: one call into `kernel/bootstrap.py`, which does the work. */

/** A Python skill that cells can import by name. */
export interface PythonSkill {
  /** The skill's name, as the model knows it. */
  name: string;
  /** The module's name in Python. */
  import_name: string;
  /** The folder that holds the module's package folder (the skill's `src`). */
  path: string;
}

/** What the bootstrap is told; JSON, since it crosses into Python. */
export interface BootstrapOptions {
  skills: PythonSkill[];
  /** How deep in the tree of sub-agents this kernel's session is; 0 for the root. */
  depth: number;
  /** How deep it may get. */
  max_depth: number;
}

/**
 * The code of the bootstrap cell. A JSON string literal is a Python string literal too, so the options
 * need no other quoting. The module is found by name among the loaded ones: the launcher loaded it by
 * its location, since a project may well have a `bootstrap` module of its own.
 */
export function buildRlmBootstrapCode(options: BootstrapOptions): string {
  // Only ASCII: IPython parts cells into lines at characters that Python does not take for line ends.
  const ascii = JSON.stringify(options).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const argument = JSON.stringify(ascii);
  return `__import__("sys").modules["prime_agent_bootstrap"].install(get_ipython(), ${argument})`;
}

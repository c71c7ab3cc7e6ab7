/**
 * Finds the failed tests in what a test runner printed, with what it said of
 * them, so that they can be told again at the end: a long log is often read,
 * or kept, from its end only.
 */

const MAX_LINES_EACH = 60;
const ENDED_TEST = /^\((pass|fail|skip|todo)\) /;
const BUN_FILE = /^\S+\.test\.ts:$/;
const PYTHON_FAILURE = /^(FAIL|ERROR): /;
const PYTHON_RULE = /^[=-]{70}$/;

/** The failed tests in the output of `bun test`: each with the lines printed while it ran. */
export function bunFailures(output: string): string[] {
  const failures: string[] = [];
  let file = "";
  let lines: string[] = [];
  for (const line of output.split("\n")) {
    if (BUN_FILE.test(line)) {
      file = line;
      lines = [];
      continue;
    }
    lines.push(line);
    const ended = ENDED_TEST.exec(line);
    if (ended === null) continue;
    if (ended[1] === "fail") failures.push([file, ...shortened(lines)].join("\n"));
    lines = [];
  }
  return failures;
}

/** The failed tests in the output of Python's unittest: each with its traceback. */
export function pythonFailures(output: string): string[] {
  const failures: string[] = [];
  let lines: string[] | undefined;
  const end = () => {
    if (lines !== undefined) failures.push(shortened(lines).join("\n").trimEnd());
    lines = undefined;
  };
  let rule = false;
  for (const line of output.split("\n")) {
    if (rule && PYTHON_FAILURE.test(line)) {
      end();
      lines = [line];
    } else if (/^Ran \d+ tests? in /.test(line)) {
      end();
    } else if (!PYTHON_RULE.test(line)) {
      lines?.push(line);
    }
    rule = PYTHON_RULE.test(line);
  }
  end();
  return failures;
}

/** The end of an output that names no failed test. */
export function lastLines(output: string): string {
  return shortened(output.trimEnd().split("\n")).join("\n");
}

function shortened(lines: readonly string[]): readonly string[] {
  const left = lines.length - MAX_LINES_EACH;
  return left > 0 ? [`... ${left} lines`, ...lines.slice(left)] : lines;
}

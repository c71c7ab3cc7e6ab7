/** A working folder alone never runs code or changes anything at start. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";

test("a folder full of traps runs none of them, and the project's modules stay importable", async () => {
  using user = new UserHome();
  const trap = (name: string) =>
    `open(${JSON.stringify(join(user.cwd, `ran-${name}`))}, "w").close()\n`;
  const files: Record<string, string> = {
    ".env": "NO_COLOR=0\nPRIME_AGENT_KERNEL_PYTHON=/no/such/python\nFROM_DOTENV=1\n",
    "bunfig.toml": 'preload = ["./preload.ts"]\n',
    "preload.ts": 'await Bun.write("ran-preload", "");\n',
    "package.json":
      '{"scripts": {"preinstall": "touch ran-package"}, "bun": {"preload": "./preload.ts"}}',
    "tsconfig.json": '{"compilerOptions": {"paths": {"*": ["./preload.ts"]}}}',
    "project_module.py": "answer = 42\n",
  };
  const modules = [
    "sitecustomize",
    "usercustomize",
    "IPython",
    "ipykernel",
    "random",
    "queue",
    "json",
    "zmq",
    "rlm",
    "bootstrap",
    "launcher",
  ];
  for (const name of modules) files[`${name}.py`] = `${trap(name)}origin = "project"\n`;
  for (const [name, text] of Object.entries(files)) await Bun.write(join(user.cwd, name), text);
  const run = await user.run([
    "cell",
    "import json, queue, random, os, project_module; print(random.random() < 1, project_module.answer, os.environ.get('FROM_DOTENV'))",
    "import bootstrap, launcher; print(bootstrap.origin, launcher.origin)",
  ]);
  expectCode(run, 0);
  expect(run.stdout).toBe("True 42 None\nproject project\n");
  const ran = Object.keys(files).filter((name) =>
    existsSync(join(user.cwd, `ran-${name.replace(/\.py$/, "")}`)),
  );
  // Only what the cell itself imported.
  expect(ran.sort()).toEqual(["bootstrap.py", "launcher.py"]);
  expect(existsSync(join(user.cwd, "ran-preload"))).toBe(false);
});

test("a settings file of the project counts only with --trust-project", async () => {
  using user = new UserHome();
  await Bun.write(
    join(user.cwd, ".prime/agent/settings.json"),
    '{"commandPrefix": "echo from the project"}',
  );
  const cell = ["cell", "%%bash\necho hi"];
  expect((await user.run(cell)).stdout).toBe("hi\n");
  expect((await user.run([...cell, "--trust-project"])).stdout).toBe("from the project\nhi\n");
});

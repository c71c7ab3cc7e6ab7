import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { loadAssets } from "../../../src/kernel/assets.ts";
import { describeWithWheels, evaluate, Sandbox } from "../../support/environment.ts";

const MAX_ENVIRONMENT_BYTES = 60e6;

describeWithWheels("the carried wheels", () => {
  test("an empty home without a network gets one that runs ipykernel", async () => {
    using sandbox = new Sandbox();
    const environment = await sandbox.ensure({ assets: await loadAssets(sandbox) });
    expect(environment).toMatchObject({
      python: join(sandbox.venv, "bin/python"),
      source: "managed",
      venvDir: sandbox.venv,
      built: true,
    });
    const code = "import ipykernel.kernelapp, IPython, dill, nest_asyncio, pip; print('imported')";
    expect(evaluate(environment.python, code)).toBe("imported");
    expect(evaluate(environment.python, CHECK)).toBe("No broken requirements found.");
    expect(bytesOnDisk(sandbox.venv)).toBeLessThan(MAX_ENVIRONMENT_BYTES);
    expect(evaluate(environment.python, "import sys; print(sys.prefix)")).toBe(sandbox.venv);
    expect(readdirSync(sandbox.home)).toEqual(["kernel-venv"]);
    expect(sandbox.lines).toEqual([
      expect.stringMatching(/^Building the Python environment .* carried packages\)…$/),
      expect.stringMatching(/^The Python environment is ready after [\d.]+ s\.$/),
    ]);
  });

  test("modules are compiled although the environment says not to, and know their final place", async () => {
    using sandbox = new Sandbox();
    sandbox.env["PYTHONDONTWRITEBYTECODE"] = "1";
    const { python } = await sandbox.ensure();
    const code = "import dill; print(dill.loads.__code__.co_filename, dill.__cached__)";
    const [source = "", compiled = ""] = evaluate(python, code).split(" ");
    expect(source).toStartWith(sandbox.venv);
    expect(existsSync(compiled)).toBe(true);
    expect(readFileSync(compiled).includes(`${sandbox.venv}/lib/`)).toBe(true);
    expect(readFileSync(compiled).includes(".new-")).toBe(false);
  });
});

const CHECK =
  "from pip._internal.cli.main import main; main(['check', '--disable-pip-version-check'])";

function bytesOnDisk(folder: string): number {
  const kilobytes = Bun.spawnSync(["du", "-sk", folder]).stdout.toString().split("\t")[0];
  return Number(kilobytes) * 1024;
}

import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import {
  type AssetsDescription,
  checkAssets,
  loadAssets,
  unpackAssets,
} from "../../../src/kernel/assets.ts";
import { TempDir } from "../../support/temp-dir.ts";

const CONTENT: Record<string, string> = {
  "kernel/launcher.py": "print('launch')\n",
  "kernel/rlm/__init__.py": "",
  "kernel/no-editor.sh": "#!/bin/sh\n",
  "carried/wheels.json": '{"platform":"linux-x64"}',
  "carried/wheels.tar.zst": "archive",
};

/** What an executable with {@link CONTENT} embeds. */
function embed(): { files: Map<string, Blob>; description: AssetsDescription } {
  const files = new Map(Object.entries(CONTENT).map(([path, text]) => [path, new Blob([text])]));
  const description: AssetsDescription = {
    hash: "0123456789abcdef",
    files: Object.entries(CONTENT).map(([path, text]) => ({
      path,
      size: text.length,
      sha256: new Bun.CryptoHasher("sha256").update(text).digest("hex"),
      ...(path.endsWith(".sh") && { executable: true }),
    })),
  };
  files.set("carried/assets.json", new Blob([JSON.stringify(description)]));
  return { files, description };
}

test("embedded files are unpacked for their owner only, below a folder named by their hash", async () => {
  using home = new TempDir();
  const { files, description } = embed();
  const assets = await unpackAssets(files, description, { home: home.path, env: {} });
  expect(assets.root).toBe(home.join("runtime", description.hash));
  expect(readFileSync(`${assets.root}/launcher.py`, "utf8")).toBe(CONTENT["kernel/launcher.py"]!);
  const modes = ["", "launcher.py", "no-editor.sh"].map(
    (name) => statSync(`${assets.root}/${name}`).mode & 0o777,
  );
  expect(modes).toEqual([0o700, 0o600, 0o700]);
  expect(assets.wheels?.description.platform).toBe("linux-x64");
});

test("many that unpack at once get one complete folder and leave nothing else", async () => {
  using home = new TempDir();
  const { files, description } = embed();
  const all = await Promise.all(
    Array.from({ length: 8 }, () => unpackAssets(files, description, { home: home.path, env: {} })),
  );
  expect(new Set(all.map((assets) => assets.root)).size).toBe(1);
  expect(readdirSync(home.join("runtime"))).toEqual([description.hash]);
});

test("a folder that lost a file is unpacked anew", async () => {
  using home = new TempDir();
  const { files, description } = embed();
  const { root } = await unpackAssets(files, description, { home: home.path, env: {} });
  rmSync(`${root}/launcher.py`);
  await unpackAssets(files, description, { home: home.path, env: {} });
  expect(existsSync(`${root}/launcher.py`)).toBe(true);
  expect(readdirSync(home.join("runtime"))).toEqual([description.hash]);
});

test("a home that can't be written to is replaced by the next folder, and that is said once", async () => {
  using folder = new TempDir();
  const home = `${folder.write("file", "")}/agent`;
  const lines: string[] = [];
  const { files, description } = embed();
  const options = {
    home,
    env: { XDG_DATA_HOME: folder.join("data") },
    onProgress: (line: string) => lines.push(line),
  };
  const first = await unpackAssets(files, description, options);
  const second = await unpackAssets(files, description, options);
  expect(first.root).toStartWith(folder.join("data/prime/agent/"));
  expect(second.root).toBe(first.root);
  expect(lines).toEqual([
    `${home} can't be written to; using ${folder.join("data/prime/agent")} instead.`,
  ]);
});

test("the check of intact embedded files finds nothing", async () => {
  expect(await checkAssets(embed().files)).toEqual([]);
});

test("the check names each file that is missing, damaged or extra", async () => {
  const { files } = embed();
  files.delete("kernel/launcher.py");
  files.set("carried/wheels.tar.zst", new Blob(["archivE"]));
  files.set("kernel/__pycache__/launcher.pyc", new Blob(["?"]));
  expect(await checkAssets(files)).toEqual([
    "kernel/launcher.py is missing",
    "carried/wheels.tar.zst is damaged",
    "kernel/__pycache__/launcher.pyc is not on the list",
  ]);
});

test("run from source, kernel/ is used as it is", async () => {
  const assets = await loadAssets({ home: "/nonexistent", env: {} });
  expect(assets.hash).toBe("source");
  expect(existsSync(`${assets.root}/launcher.py`)).toBe(true);
});

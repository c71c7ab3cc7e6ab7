import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, statSync } from "node:fs";
import {
  dataFolders,
  prepareDataFolder,
  writableDataFolder,
} from "../../../src/kernel/data-folder.ts";
import { NoWritableFolderError } from "../../../src/kernel/environment-errors.ts";
import { TempDir } from "../../support/temp-dir.ts";

const USER_ID = process.getuid?.() ?? 0;

test.each([
  [{}, ["/a", `/tmp/prime-agent-${USER_ID}`]],
  [{ HOME: "/h" }, ["/a", "/h/.local/share/prime/agent", `/tmp/prime-agent-${USER_ID}`]],
  [
    { HOME: "/h", XDG_DATA_HOME: "" },
    ["/a", "/h/.local/share/prime/agent", `/tmp/prime-agent-${USER_ID}`],
  ],
  [{ XDG_DATA_HOME: "/x", TMPDIR: "/t" }, ["/a", "/x/prime/agent", `/t/prime-agent-${USER_ID}`]],
])("with %j the data folders are %j", (env, folders) => {
  expect(dataFolders({ home: "/a", env })).toEqual(folders);
});

test("the home is made with mode 0700 and used", () => {
  using folder = new TempDir();
  const home = folder.join("deep/agent");
  expect(writableDataFolder("tests", { home, env: {} })).toBe(home);
  expect(statSync(home).mode & 0o777).toBe(0o700);
});

test("without any writable folder the error names all that were tried", () => {
  using folder = new TempDir();
  const file = folder.write("file", "");
  const attempt = () =>
    writableDataFolder("tests", { home: `${file}/a`, env: { HOME: file, TMPDIR: file } });
  expect(attempt).toThrow(NoWritableFolderError);
  expect(attempt).toThrow(`${file}/a, ${file}/.local/share/prime/agent, ${file}/prime-agent-`);
});

test("a folder of our name that others may write to is not trusted below a folder for all", () => {
  using folder = new TempDir();
  chmodSync(folder.path, 0o1777);
  mkdirSync(folder.join("planted"));
  chmodSync(folder.join("planted"), 0o777);
  expect(() => prepareDataFolder(folder.join("planted"))).toThrow("not private");
  expect(() => prepareDataFolder(folder.join("new"))).not.toThrow();
});

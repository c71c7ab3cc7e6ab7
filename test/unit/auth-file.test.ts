/** Saved keys: what is kept, what is read, and who may read the file. */

import { describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs";
import { readSavedKeys, saveKey } from "../../src/auth-file.ts";
import { UsageError } from "../../src/errors.ts";
import { TempDir } from "../support/temp-dir.ts";

describe("a saved key", () => {
  test("comes back, is replaced and is removed", () => {
    using home = new TempDir();
    expect(readSavedKeys(home.path)).toEqual({});
    expect(saveKey(home.path, "openai", "sk-1")).toBe(true);
    expect(saveKey(home.path, "groq", "gsk-1")).toBe(true);
    expect(saveKey(home.path, "openai", "sk-2")).toBe(true);
    expect(readSavedKeys(home.path)).toEqual({ openai: "sk-2", groq: "gsk-1" });
    expect(saveKey(home.path, "openai", undefined)).toBe(true);
    expect(saveKey(home.path, "openai", undefined)).toBe(false);
    expect(readSavedKeys(home.path)).toEqual({ groq: "gsk-1" });
  });

  test("lies in a file for its owner alone, also where the file was open to others; nothing else stays", () => {
    using home = new TempDir();
    chmodSync(home.write("auth.json", "{}"), 0o644);
    saveKey(home.path, "openai", "sk-1");
    expect(statSync(home.join("auth.json")).mode & 0o777).toBe(0o600);
    expect(readdirSync(home.path)).toEqual(["auth.json"]);
  });

  test("leaves the entries of other programs as they are", () => {
    using home = new TempDir();
    const oauth = { type: "oauth", access: "a", refresh: "r", expires: 1 };
    home.write(
      "auth.json",
      JSON.stringify({ anthropic: oauth, odd: null, number: { type: "api_key", key: 5 } }),
    );
    expect(readSavedKeys(home.path)).toEqual({});
    saveKey(home.path, "openai", "sk-1");
    const saved = JSON.parse(readFileSync(home.join("auth.json"), "utf8"));
    expect(saved).toEqual({
      anthropic: oauth,
      odd: null,
      number: { type: "api_key", key: 5 },
      openai: { type: "api_key", key: "sk-1" },
    });
  });
});

describe("an auth.json", () => {
  test.each(["{", "[]", "null", '"text"'])(
    "that holds %s is refused by name, and not overwritten",
    (text) => {
      using home = new TempDir();
      const path = home.write("auth.json", text);
      expect(() => readSavedKeys(home.path)).toThrow(UsageError);
      expect(() => saveKey(home.path, "openai", "sk-1")).toThrow(path);
      expect(readFileSync(path, "utf8")).toBe(text);
    },
  );

  test("that can't be written is an error that names it", () => {
    using home = new TempDir();
    home.write("file", "");
    expect(() => saveKey(home.join("file"), "openai", "sk-1")).toThrow(
      "auth.json can't be written",
    );
  });
});

/** Images of a prompt: their kind is what their bytes say. */

import { expect, test } from "bun:test";
import { readImages } from "../../src/app-images.ts";
import { UsageError } from "../../src/errors.ts";
import { TempDir } from "../support/temp-dir.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);
const GIF = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

test("a prompt without images is its text", async () => {
  expect(await readImages("look", [])).toBe("look");
});

test("images follow the text, in order, with the kind that their bytes say", async () => {
  using dir = new TempDir();
  const paths = [dir.write("really-a-png.gif", PNG), dir.write("b.gif", GIF)];
  const content = await readImages("look", paths);
  expect(content).toHaveLength(3);
  expect(content[0]).toEqual({ type: "text", text: "look" });
  expect(content[1]).toEqual({
    type: "image",
    mimeType: "image/png",
    data: PNG.toString("base64"),
  });
  expect(content[2]).toMatchObject({ type: "image" });
});

test.each([
  ["a text", "no image", "is not a PNG, JPEG, GIF or WebP image"],
  ["nothing", "", "is not a PNG, JPEG, GIF or WebP image"],
])("a file that holds %s is refused by name", async (_, content, says) => {
  using dir = new TempDir();
  const path = dir.write("x.png", content);
  const reading = readImages("look", [path]);
  await expect(reading).rejects.toThrow(UsageError);
  await expect(readImages("look", [path])).rejects.toThrow(`${path} ${says}`);
});

test("a file that is not there, or is a folder, is refused by name", async () => {
  using dir = new TempDir();
  for (const path of [dir.join("none.png"), dir.path])
    await expect(readImages("look", [path])).rejects.toThrow(`the image ${path} can't be read`);
});

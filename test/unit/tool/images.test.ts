/** Images: checked, taken for what they are, scaled, bounded. */

import { describe, expect, test } from "bun:test";
import { CellImages } from "../../../src/tool/cell-images.ts";
import { prepareImage } from "../../../src/tool/images.ts";

/** A BMP of noise or of one colour, from which Bun makes the other formats. */
function bitmap(width: number, height: number, noise = false): Buffer {
  const row = Math.ceil((width * 3) / 4) * 4;
  const bytes = Buffer.alloc(54 + row * height, 0x40);
  bytes.write("BM", 0);
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(0, 6);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  bytes.fill(0, 30, 54);
  let state = 1;
  for (let at = 54; noise && at < bytes.length; at += 1) {
    state = (state * 48_271) % 2_147_483_647;
    bytes[at] = state & 255;
  }
  return bytes;
}

const png = (width: number, height: number, noise = false) =>
  new Bun.Image(bitmap(width, height, noise)).png().toBase64();
const jpeg = (width: number, height: number) =>
  new Bun.Image(bitmap(width, height)).jpeg().toBase64();

async function sizeOf(data: string): Promise<string> {
  const { width, height, format } = await new Bun.Image(Buffer.from(data, "base64")).metadata();
  return `${width}x${height} ${format}`;
}

const whole = Buffer.from(await png(100, 100, true), "base64");

describe("an image", () => {
  test("within the limits goes through as it is, also with line breaks in its base64", async () => {
    const data = await png(640, 480);
    const wrapped = data.replace(/.{76}/g, "$&\n");
    const block = { type: "image", data, mimeType: "image/png" } as const;
    expect(await prepareImage(wrapped, "image/png")).toEqual({ block });
  });

  test("goes as what its data is, whatever the bundle claims", async () => {
    const data = await jpeg(10, 10);
    expect(await prepareImage(data, "image/png")).toEqual({
      block: { type: "image", data, mimeType: "image/jpeg" },
    });
    const prepared = await prepareImage(bitmap(10, 10).toString("base64"), "image/png");
    expect("block" in prepared && prepared.block.mimeType).toBe("image/png");
    expect("block" in prepared && (await sizeOf(prepared.block.data))).toBe("10x10 png");
  });

  test.each([
    { width: 3_200, height: 800, to: "1568x392 png" },
    { width: 10_000, height: 800, to: "1568x125 png" },
    { width: 100, height: 2_000, to: "78x1568 png" },
  ])("of $width×$height is scaled to $to, and a note says so", async ({ width, height, to }) => {
    const prepared = await prepareImage(await png(width, height), "image/png");
    if (!("block" in prepared)) throw new Error(prepared.refused);
    expect(await sizeOf(prepared.block.data)).toBe(to);
    expect(prepared.note).toBe(
      `scaled down from ${width}×${height} to at most 1568 pixels an edge`,
    );
  });

  test("with too many bytes for its size is scaled until it fits", async () => {
    const data = await png(1_500, 1_500, true);
    expect(data.length).toBeGreaterThan(4_500_000);
    const prepared = await prepareImage(data, "image/png");
    if (!("block" in prepared)) throw new Error(prepared.refused);
    expect(prepared.block.data.length).toBeLessThan(4_500_000);
    expect(prepared.note).toContain("scaled down from 1500×1500");
  });

  test("that was a JPEG stays one when it is scaled", async () => {
    const prepared = await prepareImage(await jpeg(3_000, 3_000), "image/jpeg");
    expect("block" in prepared && (await sizeOf(prepared.block.data))).toBe("1568x1568 jpeg");
  });

  test.each([
    { name: "nothing", data: "" },
    { name: "one character", data: "eA==" },
    { name: "no base64", data: "<svg/>" },
    { name: "a header alone", data: whole.subarray(0, 40).toString("base64") },
    { name: "half of its pixels", data: whole.subarray(0, whole.length / 2).toString("base64") },
  ])("of $name is refused", async ({ data }) => {
    expect(await prepareImage(data, "image/png")).toEqual({
      refused: "its data is not a readable image/png image",
    });
  });

  test("of more pixels than anybody decodes is refused", async () => {
    const header = Buffer.from(await png(1, 1), "base64");
    header.writeUInt32BE(12_000, 16);
    header.writeUInt32BE(9_000, 20);
    const prepared = await prepareImage(header.toString("base64"), "image/png");
    expect("refused" in prepared).toBe(true);
  });
});

describe("the images of a cell", () => {
  test("are at most 20; the others are counted", async () => {
    const images = new CellImages();
    const data = await png(4, 4);
    for (let index = 0; index < 25; index += 1) images.add(data, "image/png");
    images.add("x", "image/svg+xml");
    const { blocks, notes } = await images.prepare();
    expect(blocks).toHaveLength(20);
    expect(notes).toEqual(["[5 more images left out: a cell may show 20, and 60 MB in all]"]);
  });

  test("are held within bounds before anybody looks at them", async () => {
    const images = new CellImages();
    for (let index = 0; index < 7; index += 1) images.add("A".repeat(10_000_000), "image/png");
    expect((await images.prepare()).notes.at(-1)).toStartWith("[1 more images left out");
  });

  test("that replace each other in one display count once", async () => {
    const images = new CellImages();
    const last = await png(9, 9);
    for (const data of [await png(1, 1), await png(2, 2), last]) {
      images.forget("plot");
      images.add(data, "image/png", "plot");
    }
    expect((await images.prepare()).blocks.map(({ data }) => data)).toEqual([last]);
  });

  test("that are unusable are named by their number, and the others shown", async () => {
    const images = new CellImages();
    const good = await png(2, 2);
    for (const data of ["eA==", good]) images.add(data, "image/png");
    expect(await images.prepare()).toEqual({
      blocks: [{ type: "image", data: good, mimeType: "image/png" }],
      notes: ["[image 1: left out: its data is not a readable image/png image]"],
    });
  });

  test("are gone after a clear_output", async () => {
    const images = new CellImages();
    images.add("eA==", "image/png");
    images.clear();
    expect(await images.prepare()).toEqual({ blocks: [], notes: [] });
  });
});

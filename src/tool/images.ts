/** Images on their way to the model: checked, and scaled down to what providers accept. */

import { debug } from "../log.ts";
import type { ImageBlock } from "../message.ts";

/** Longest edge that every provider takes, also in a conversation with many images. */
const MAX_EDGE_PX = 1_568;
/** Base64 characters of one image; the strictest provider takes 5 MB of them. */
const MAX_BASE64_CHARS = 4_500_000;
/** More pixels than this are not decoded at all. */
const MAX_PIXELS = 100_000_000;

/** Media types that go to the model as images. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;

/** An image block, or the reason why there is none; `note` says what was changed. */
export type PreparedImage = { block: ImageBlock; note?: string } | { refused: string };

/**
 * Checks base64 image data, and scales it down when it is over the limits. The block says what the data
 * is, whatever `mimeType` claims: providers refuse a whole conversation over one image that is mislabelled
 * or broken. Never throws.
 */
export async function prepareImage(data: string, mimeType: string): Promise<PreparedImage> {
  try {
    const bytes = Buffer.from(data, "base64");
    const image = new Bun.Image(bytes, { maxPixels: MAX_PIXELS });
    const { width, height, format } = await image.metadata();
    if (width * height > MAX_PIXELS)
      return { refused: `it has ${width}×${height} pixels, which is too many` };
    const base64 = bytes.toString("base64");
    const actual = IMAGE_TYPES.find((type) => type === `image/${format}`);
    const fits = Math.max(width, height) <= MAX_EDGE_PX && base64.length <= MAX_BASE64_CHARS;
    if (!actual || !fits) return await scaleDown(bytes, { width, height }, actual);
    await decode(bytes);
    return { block: { type: "image", data: base64, mimeType: actual } };
  } catch (error) {
    debug("tool", "an image could not be read", error);
    return { refused: `its data is not a readable ${mimeType} image` };
  }
}

/** Throws when the pixels can't be decoded; a header alone may be intact. */
async function decode(bytes: Buffer): Promise<void> {
  await new Bun.Image(bytes, { maxPixels: MAX_PIXELS }).resize(1, 1).png().bytes();
}

async function scaleDown(
  bytes: Buffer,
  size: { width: number; height: number },
  mimeType: string | undefined,
): Promise<PreparedImage> {
  for (let edge = MAX_EDGE_PX; edge >= 256; edge = Math.floor(edge / 2)) {
    const image = new Bun.Image(bytes, { maxPixels: MAX_PIXELS });
    const scaled = image.resize(edge, edge, { fit: "inside", withoutEnlargement: true });
    const jpeg = mimeType === "image/jpeg";
    const data = await (jpeg ? scaled.jpeg({ quality: 85 }) : scaled.png()).toBase64();
    if (data.length > MAX_BASE64_CHARS) continue;
    const block = { type: "image", data, mimeType: jpeg ? "image/jpeg" : "image/png" } as const;
    if (Math.max(size.width, size.height) <= edge) return { block };
    const note = `scaled down from ${size.width}×${size.height} to at most ${edge} pixels an edge`;
    return { block, note };
  }
  return {
    refused: `it is too large (${size.width}×${size.height}) and could not be made small enough`,
  };
}

/** Images that go with a prompt (`-i FILE`). */

import { readFileSync } from "node:fs";
import { errorMessage, UsageError } from "./errors.ts";
import type { ImageBlock, TextBlock } from "./message.ts";
import { prepareImage } from "./tool/images.ts";

/** The prompt as message content, with the images after the text. @throws UsageError for an unusable file. */
export async function readImages(
  text: string,
  paths: readonly string[],
): Promise<string | Array<TextBlock | ImageBlock>> {
  if (paths.length === 0) return text;
  const blocks: ImageBlock[] = [];
  for (const path of paths) blocks.push(await readImage(path));
  return [{ type: "text", text }, ...blocks];
}

async function readImage(path: string): Promise<ImageBlock> {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new UsageError(`the image ${path} can't be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const mimeType = sniff(bytes);
  if (!mimeType) throw new UsageError(`${path} is not a PNG, JPEG, GIF or WebP image`);
  const prepared = await prepareImage(bytes.toString("base64"), mimeType);
  if ("refused" in prepared)
    throw new UsageError(`the image ${path} can't be sent: ${prepared.refused}`);
  return prepared.block;
}

/** The media type that a file's first bytes say. */
function sniff(bytes: Buffer): string | undefined {
  const head = bytes.subarray(0, 12).toString("latin1");
  if (head.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("GIF8")) return "image/gif";
  if (head.startsWith("RIFF") && head.slice(8) === "WEBP") return "image/webp";
  return undefined;
}

/** The images that one cell shows, in bounded memory, each with its last state. */

import type { ImageBlock } from "../message.ts";
import { IMAGE_TYPES, prepareImage } from "./images.ts";

/** Images that one cell may show to the model. */
const MAX_IMAGES = 20;
/** Base64 characters that are held until the cell is over. */
const MAX_HELD_CHARS = 60_000_000;

interface HeldImage {
  data: string;
  mimeType: string;
  displayId: string | undefined;
}

/** See the head of this file. */
export class CellImages {
  #held: HeldImage[] = [];
  #dropped = 0;

  /** Takes an image; other media types than the usual ones are none. */
  add(data: string, mimeType: string, displayId?: string): void {
    if (!IMAGE_TYPES.some((known) => known === mimeType)) return;
    const chars = this.#held.reduce((sum, image) => sum + image.data.length, data.length);
    if (this.#held.length >= MAX_IMAGES || chars > MAX_HELD_CHARS) this.#dropped += 1;
    else this.#held.push({ data, mimeType, displayId });
  }

  /** Forgets the images of a display that gets a new state. */
  forget(displayId: string): void {
    this.#held = this.#held.filter((image) => image.displayId !== displayId);
  }

  /** Forgets everything, as `clear_output` asks. */
  clear(): void {
    this.#held = [];
    this.#dropped = 0;
  }

  /** The blocks for the model, scaled where needed, and notes about images that changed or are missing. */
  async prepare(): Promise<{ blocks: ImageBlock[]; notes: string[] }> {
    const blocks: ImageBlock[] = [];
    const notes: string[] = [];
    for (const [index, { data, mimeType }] of this.#held.entries()) {
      const prepared = await prepareImage(data, mimeType);
      if ("block" in prepared) blocks.push(prepared.block);
      const remark = "block" in prepared ? prepared.note : `left out: ${prepared.refused}`;
      if (remark) notes.push(`[image ${index + 1}: ${remark}]`);
    }
    if (this.#dropped > 0) {
      const bounds = `a cell may show ${MAX_IMAGES}, and ${MAX_HELD_CHARS / 1e6} MB in all`;
      notes.push(`[${this.#dropped} more images left out: ${bounds}]`);
    }
    return { blocks, notes };
  }
}

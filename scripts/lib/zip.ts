/** Reading wheels, which are ZIP files (APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16). */

import { inflateRawSync } from "node:zlib";

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_HEADER_BYTES = 30;
const DEFLATED = 8;

/** One file of an archive, unpacked. */
export interface ZipEntry {
  readonly path: string;
  readonly data: Uint8Array;
}

/** All files of a ZIP archive, in the order of its directory. Throws when it is damaged; no ZIP64. */
export function readZip(bytes: Uint8Array): ZipEntry[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = buffer.lastIndexOf(Buffer.from(Uint32Array.of(END_OF_DIRECTORY).buffer));
  if (end < 0) throw new Error("not a ZIP archive: its end record is missing");
  const entries: ZipEntry[] = [];
  let at = buffer.readUInt32LE(end + 16);
  for (let count = buffer.readUInt16LE(end + 10); count > 0; count -= 1) {
    if (buffer.readUInt32LE(at) !== DIRECTORY_ENTRY) throw new Error("damaged ZIP directory");
    const method = buffer.readUInt16LE(at + 10);
    const size = buffer.readUInt32LE(at + 20);
    const nameLength = buffer.readUInt16LE(at + 28);
    const extraLength = buffer.readUInt16LE(at + 30) + buffer.readUInt16LE(at + 32);
    const header = buffer.readUInt32LE(at + 42);
    const path = buffer.toString("utf8", at + 46, at + 46 + nameLength);
    const start =
      header +
      LOCAL_HEADER_BYTES +
      buffer.readUInt16LE(header + 26) +
      buffer.readUInt16LE(header + 28);
    const stored = buffer.subarray(start, start + size);
    if (!path.endsWith("/")) {
      entries.push({ path, data: method === DEFLATED ? inflateRawSync(stored) : stored });
    }
    at += 46 + nameLength + extraLength;
  }
  return entries;
}

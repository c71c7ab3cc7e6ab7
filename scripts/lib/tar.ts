/** Writing tar archives (POSIX ustar) whose bytes depend on nothing but their content. */

const BLOCK_BYTES = 512;
/** 2020-01-01: one moment for all files, after 1980, which ZIP tools need. */
const MODIFIED_SECONDS = 1577836800;

/** A regular file to be archived. */
export interface TarEntry {
  readonly path: string;
  readonly data: Uint8Array;
  readonly executable?: boolean;
}

/** An archive of these files, in this order, owned by nobody in particular. */
export function writeTar(entries: readonly TarEntry[]): Uint8Array {
  const blocks: Uint8Array[] = [];
  for (const entry of entries) {
    const padding = (BLOCK_BYTES - (entry.data.length % BLOCK_BYTES)) % BLOCK_BYTES;
    blocks.push(header(entry), entry.data, new Uint8Array(padding));
  }
  blocks.push(new Uint8Array(2 * BLOCK_BYTES));
  return Buffer.concat(blocks);
}

function header(entry: TarEntry): Uint8Array {
  const block = Buffer.alloc(BLOCK_BYTES);
  const [prefix, name] = splitPath(entry.path);
  block.write(name, 0, "utf8");
  writeOctal(block, 100, 8, entry.executable ? 0o755 : 0o644);
  writeOctal(block, 108, 8, 0);
  writeOctal(block, 116, 8, 0);
  writeOctal(block, 124, 12, entry.data.length);
  writeOctal(block, 136, 12, MODIFIED_SECONDS);
  block.write("        0", 148, "latin1");
  block.write("ustar\u000000", 257, "latin1");
  block.write(prefix, 345, "utf8");
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

/** ustar has room for 100 bytes of name and 155 of the folders before it. */
function splitPath(path: string): [string, string] {
  if (Buffer.byteLength(path) <= 100) return ["", path];
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (Buffer.byteLength(name) <= 100 && Buffer.byteLength(prefix) <= 155) return [prefix, name];
  }
  throw new Error(`too long for a tar archive: ${path}`);
}

function writeOctal(block: Buffer, at: number, length: number, value: number): void {
  block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
}

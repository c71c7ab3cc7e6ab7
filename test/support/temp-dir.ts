/** A folder that lasts as long as its `using` scope. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A temporary folder; removed with all its content when disposed. */
export class TempDir implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "prime-agent-test-"));

  /** The absolute path of `name` inside. */
  join(...name: string[]): string {
    return join(this.path, ...name);
  }

  /** Writes a file and the folders above it; returns its path. */
  write(name: string, content: string | Uint8Array): string {
    const path = this.join(name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

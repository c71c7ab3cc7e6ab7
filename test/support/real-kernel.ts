/** A real ipykernel as anybody would start it: `python -m ipykernel_launcher -f FILE`. */

import {
  createIpcConnection,
  createTcpConnection,
  readConnectionFile,
  writeConnectionFile,
  type ConnectionInfo,
} from "../../src/jupyter/connection-file.ts";
import { pythonFor, type PythonName } from "./python.ts";
import { TempDir } from "./temp-dir.ts";

const BOOT_TIMEOUT_MS = 60_000;

/** One kernel process with a folder of its own; both are gone when disposed. */
export class RealKernel implements AsyncDisposable {
  readonly directory = new TempDir();
  /** Where it listens, once it does. */
  readonly info: Promise<ConnectionInfo>;
  readonly #process: Bun.Subprocess<"ignore", "ignore", "ignore">;

  constructor(python: PythonName, transport: "ipc" | "tcp") {
    const path = this.directory.join("kernel.json");
    // With port 0 the kernel chooses free ports itself and writes them back.
    const anyPort = { shell: 0, iopub: 0, stdin: 0, control: 0, hb: 0 };
    writeConnectionFile(
      path,
      transport === "ipc" ? createIpcConnection(this.directory.path) : createTcpConnection(anyPort),
    );
    const directory = this.directory.path;
    this.#process = Bun.spawn([pythonFor(python), "-m", "ipykernel_launcher", "-f", path], {
      cwd: directory,
      env: { PATH: process.env.PATH ?? "", HOME: directory, IPYTHONDIR: directory },
      stdio: ["ignore", "ignore", "ignore"],
    });
    this.info = readConnectionFile(path, { timeoutMs: BOOT_TIMEOUT_MS });
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    this.directory[Symbol.dispose]();
  }
}

/**
 * Connection files: where a kernel listens, and the key of its messages
 * ("Connection files" of the messaging specification). Field names are those
 * of the file.
 */

import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { delay } from "../async.ts";
import type { Endpoint } from "../wire/transport.ts";
import { ConnectionFileError } from "./errors.ts";

/** The five sockets of a kernel. */
export type ChannelName = "shell" | "iopub" | "stdin" | "control" | "hb";

/** The number of each channel: a TCP port, or the suffix of a unix socket's path. */
export type ChannelPorts = Readonly<Record<ChannelName, number>>;

/** The content of a connection file. */
export interface ConnectionInfo {
  readonly transport: "tcp" | "ipc";
  /** A host, or for `ipc` a path: the sockets are `<ip>-<port>`. */
  readonly ip: string;
  readonly shell_port: number;
  readonly iopub_port: number;
  readonly stdin_port: number;
  readonly control_port: number;
  readonly hb_port: number;
  /** Key of the signatures; empty if messages are not signed. */
  readonly key: string;
  readonly signature_scheme: "hmac-sha256";
  readonly kernel_name?: string;
}

/** How long {@link readConnectionFile} waits for a kernel to finish its file. */
export interface ReadOptions {
  readonly signal?: AbortSignal;
  /** 0, the default: the file must be complete now. */
  readonly timeoutMs?: number;
}

/** What fits into `sun_path` beside its closing zero; libzmq can't bind longer paths. */
export const MAX_SOCKET_PATH_BYTES = process.platform === "darwin" ? 103 : 107;

const CHANNELS: readonly ChannelName[] = ["shell", "iopub", "stdin", "control", "hb"];
const IPC_PORTS: ChannelPorts = { shell: 1, iopub: 2, stdin: 3, control: 4, hb: 5 };
const MAX_PORT = 65_535;
const POLL_MS = 10;
const KEY_BYTES = 32;

/**
 * A new set of unix sockets with a new key. `directory` must be private (0700), since libzmq makes the
 * sockets themselves with the umask's mode. Creates nothing.
 *
 * @throws {ConnectionFileError} the path is too long for a socket.
 */
export function createIpcConnection(directory: string): ConnectionInfo {
  // A name of its own: libzmq takes over a path that another kernel has bound, without an error.
  const ip = join(resolve(directory), randomBytes(4).toString("hex"));
  const bytes = Buffer.byteLength(`${ip}-1`);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new ConnectionFileError(
      directory,
      `the path of a unix socket would have ${bytes} bytes; ${MAX_SOCKET_PATH_BYTES} is the limit`,
      { field: "ip", hint: "Use a shorter directory, or TCP." },
    );
  }
  return connectionInfo("ipc", ip, IPC_PORTS);
}

/** A connection over TCP with a new key, on ports that the caller has chosen. */
export function createTcpConnection(ports: ChannelPorts, ip = "127.0.0.1"): ConnectionInfo {
  return connectionInfo("tcp", ip, ports);
}

/**
 * Writes a new file that only its owner can read.
 *
 * @throws {ConnectionFileError} the file exists, or can't be written.
 */
export function writeConnectionFile(path: string, info: ConnectionInfo): void {
  try {
    // "wx" is O_CREAT | O_EXCL: never through a file or link that somebody else put there.
    writeFileSync(path, `${JSON.stringify(info, null, 2)}\n`, { flag: "wx", mode: 0o600 });
  } catch (cause) {
    throw new ConnectionFileError(path, `cannot be written (${systemCode(cause)})`, {
      hint: "Choose a writable folder and a name that is not taken.",
      cause,
    });
  }
}

/**
 * Reads and checks a connection file. Kernels write theirs by removing, creating and filling it, and
 * put 0 where they choose the port themselves, so a file that is absent, cut off or has such ports is
 * waited for.
 *
 * @throws {ConnectionFileError} the file is wrong, or not complete in time. `field` names the culprit.
 * @throws {AbortedError} the signal fired.
 */
export async function readConnectionFile(
  path: string,
  options: ReadOptions = {},
): Promise<ConnectionInfo> {
  const deadline = performance.now() + (options.timeoutMs ?? 0);
  for (;;) {
    try {
      return parseConnectionInfo(path, readText(path));
    } catch (error) {
      const unfinished = error instanceof UnfinishedFileError;
      if (!unfinished || performance.now() >= deadline) throw error;
    }
    await delay(POLL_MS, options.signal);
  }
}

/** Where a channel of this kernel listens. */
export function channelEndpoint(info: ConnectionInfo, channel: ChannelName): Endpoint {
  const port = info[`${channel}_port`];
  if (info.transport === "tcp") return { transport: "tcp", host: info.ip, port };
  return { transport: "ipc", path: `${info.ip}-${port}` };
}

/** The file may be complete in a moment. */
class UnfinishedFileError extends ConnectionFileError {}

function connectionInfo(transport: "tcp" | "ipc", ip: string, ports: ChannelPorts): ConnectionInfo {
  return {
    transport,
    ip,
    shell_port: ports.shell,
    iopub_port: ports.iopub,
    stdin_port: ports.stdin,
    control_port: ports.control,
    hb_port: ports.hb,
    key: randomBytes(KEY_BYTES).toString("hex"),
    signature_scheme: "hmac-sha256",
  };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const code = systemCode(cause);
    if (code === "ENOENT") throw new UnfinishedFileError(path, "there is no such file", { cause });
    throw new ConnectionFileError(path, `cannot be read (${code})`, { cause });
  }
}

function parseConnectionInfo(path: string, text: string): ConnectionInfo {
  if (text.trim() === "") throw new UnfinishedFileError(path, "the file is empty");
  const fields = parseObject(path, text);
  const reject = (field: string, problem: string, hint?: string): never => {
    throw new ConnectionFileError(path, `${field} ${problem}`, hint ? { field, hint } : { field });
  };
  const { transport, ip, key, signature_scheme: scheme } = fields;
  if (fields["curve_publickey"] || fields["curve_secretkey"]) {
    reject("curve_publickey", "asks for CURVE encryption, which is not supported", NO_CURVE_HINT);
  }
  if (transport !== "tcp" && transport !== "ipc")
    return reject("transport", 'must be "tcp" or "ipc"');
  if (typeof ip !== "string" || ip === "") return reject("ip", "must be a host or a path");
  if (typeof key !== "string") return reject("key", "must be a string (empty if unsigned)");
  if (scheme !== "hmac-sha256" && key !== "") reject("signature_scheme", 'must be "hmac-sha256"');
  const ports = readPorts(path, fields);
  const name = fields["kernel_name"];
  const info = { ...connectionInfo(transport, ip, ports), key };
  return typeof name === "string" && name !== "" ? { ...info, kernel_name: name } : info;
}

const NO_CURVE_HINT =
  "Start the kernel without encryption, on unix sockets if others share the machine.";

function parseObject(path: string, text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UnfinishedFileError(path, "the file is not JSON", { cause });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new ConnectionFileError(path, "the file does not hold a JSON object");
}

function readPorts(path: string, fields: Record<string, unknown>): ChannelPorts {
  const ports = {} as Record<ChannelName, number>;
  for (const channel of CHANNELS) {
    const field = `${channel}_port`;
    const port = fields[field];
    if (port === 0) throw new UnfinishedFileError(path, `${field} is still 0`, { field });
    if (!Number.isInteger(port) || (port as number) < 1 || (port as number) > MAX_PORT) {
      throw new ConnectionFileError(path, `${field} must be a port number`, { field });
    }
    ports[channel] = port as number;
  }
  return ports;
}

function systemCode(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

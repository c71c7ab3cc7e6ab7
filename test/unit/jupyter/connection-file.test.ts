import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AbortedError } from "../../../src/errors.ts";
import {
  channelEndpoint,
  createIpcConnection,
  createTcpConnection,
  MAX_SOCKET_PATH_BYTES,
  readConnectionFile,
  writeConnectionFile,
  type ConnectionInfo,
} from "../../../src/jupyter/connection-file.ts";
import { ConnectionFileError } from "../../../src/jupyter/errors.ts";

const directory = mkdtempSync(join(tmpdir(), "pa-cf-"));
afterAll(() => rmSync(directory, { recursive: true }));

let files = 0;
const newPath = () => join(directory, `${(files += 1)}.json`);

const TCP = createTcpConnection({ shell: 1001, iopub: 1002, stdin: 1003, control: 1004, hb: 1005 });
const VALID: ConnectionInfo = { ...TCP, key: "k", kernel_name: "python3" };

/** The error that a promise rejects with. */
const rejectionOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

describe("creating a connection", () => {
  test("gives unix sockets of their own name in the directory, and a new key", () => {
    const [one, two] = [createIpcConnection("/run/x"), createIpcConnection("/run/x")];
    expect(one).toMatchObject({ transport: "ipc", signature_scheme: "hmac-sha256" });
    expect(one.ip).toMatch(/^\/run\/x\/[0-9a-f]{8}$/);
    expect(one.key).toMatch(/^[0-9a-f]{64}$/);
    expect(one.ip).not.toBe(two.ip);
    expect(one.key).not.toBe(two.key);
    expect(channelEndpoint(one, "shell")).toEqual({ transport: "ipc", path: `${one.ip}-1` });
    const channels = ["shell", "iopub", "stdin", "control", "hb"] as const;
    const paths = channels.map((channel) => JSON.stringify(channelEndpoint(one, channel)));
    expect(new Set(paths).size).toBe(5);
  });

  test("refuses a directory whose sockets can't be bound, counting bytes", () => {
    const rest = "/01234567-1".length;
    const longest = `/${"d".repeat(MAX_SOCKET_PATH_BYTES - rest - 1)}`;
    expect(Buffer.byteLength(`${createIpcConnection(longest).ip}-1`)).toBe(MAX_SOCKET_PATH_BYTES);
    for (const tooLong of [`${longest}d`, `/${"é".repeat(50)}`]) {
      expect(() => createIpcConnection(tooLong)).toThrow(ConnectionFileError);
    }
  });

  test("resolves a relative directory, since the kernel may run elsewhere", () => {
    expect(createIpcConnection("x").ip.startsWith(join(process.cwd(), "x/"))).toBe(true);
  });

  test("gives endpoints on the chosen TCP ports", () => {
    expect(channelEndpoint(TCP, "hb")).toEqual({ transport: "tcp", host: "127.0.0.1", port: 1005 });
  });
});

describe("writing a connection file", () => {
  test("makes a file that only the owner can read and that reads back equal", async () => {
    const path = newPath();
    writeConnectionFile(path, VALID);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await readConnectionFile(path)).toEqual(VALID);
  });

  test("never writes into a file or through a link that is there already", () => {
    const [file, link] = [newPath(), newPath()];
    writeFileSync(file, "theirs");
    symlinkSync(join(directory, "target"), link);
    for (const path of [file, link]) {
      expect(() => writeConnectionFile(path, VALID)).toThrow("cannot be written (EEXIST)");
    }
    expect(readFileSync(file, "utf8")).toBe("theirs");
  });
});

const change = (fields: object) => JSON.stringify({ ...VALID, ...fields });

const WRONG: ReadonlyArray<{ name: string; text: string; field?: string; says: string }> = [
  { name: "that is empty", text: "", says: "empty" },
  { name: "that is cut off", text: change({}).slice(0, -5), says: "not JSON" },
  { name: "that holds a list", text: "[]", says: "JSON object" },
  {
    name: "without a transport",
    text: change({ transport: undefined }),
    field: "transport",
    says: "tcp",
  },
  {
    name: "with another transport",
    text: change({ transport: "inproc" }),
    field: "transport",
    says: "ipc",
  },
  { name: "with an empty ip", text: change({ ip: "" }), field: "ip", says: "ip" },
  { name: "without a key", text: change({ key: undefined }), field: "key", says: "key" },
  {
    name: "with another signature scheme",
    text: change({ signature_scheme: "hmac-sha512" }),
    field: "signature_scheme",
    says: "hmac-sha256",
  },
  { name: "with port 0", text: change({ shell_port: 0 }), field: "shell_port", says: "still 0" },
  {
    name: "without a port",
    text: change({ hb_port: undefined }),
    field: "hb_port",
    says: "port number",
  },
  {
    name: "with a port as text",
    text: change({ iopub_port: "5" }),
    field: "iopub_port",
    says: "port number",
  },
  {
    name: "with a port over 65535",
    text: change({ stdin_port: 65536 }),
    field: "stdin_port",
    says: "port number",
  },
  {
    name: "with a fraction for a port",
    text: change({ control_port: 1.5 }),
    field: "control_port",
    says: "port number",
  },
  {
    name: "with CURVE keys",
    text: change({ curve_publickey: "x" }),
    field: "curve_publickey",
    says: "CURVE",
  },
];

describe("reading a connection file", () => {
  test.each([...WRONG])("$name names what is wrong", async ({ text, field, says }) => {
    const path = newPath();
    writeFileSync(path, text);
    const error = await rejectionOf(readConnectionFile(path));
    expect(error).toBeInstanceOf(ConnectionFileError);
    expect(error).toMatchObject({ code: "connection_file", path, field });
    expect((error as Error).message).toContain(says);
  });

  test("takes what other writers put in: unknown keys, no name, no CURVE, no key", async () => {
    const path = newPath();
    const extra = { kernel_name: "", jupyter_session: "x", curve_publickey: null, key: "" };
    writeFileSync(path, change({ ...extra, signature_scheme: "" }));
    const { kernel_name: _, ...rest } = VALID;
    expect(await readConnectionFile(path)).toEqual({ ...rest, key: "" });
  });

  test("that does not exist, or is a folder, says so", async () => {
    const missing = await rejectionOf(readConnectionFile(newPath()));
    expect((missing as Error).message).toContain("no such file");
    const folder = await rejectionOf(readConnectionFile(directory, { timeoutMs: 60_000 }));
    expect((folder as Error).message).toContain("EISDIR");
  });

  test("waits for a file that a kernel creates, fills and gives its ports step by step", async () => {
    const path = newPath();
    const steps = ["", change({}).slice(0, 30), change({ shell_port: 0 }), change({})];
    // Each poll of the reader yields to this timer, which makes one more step.
    const timer = setInterval(() => {
      const text = steps.shift();
      if (text !== undefined) writeFileSync(path, text);
    }, 15);
    try {
      expect(await readConnectionFile(path, { timeoutMs: 60_000 })).toEqual(VALID);
    } finally {
      clearInterval(timer);
    }
  });

  test("does not wait for a file that can't become right", async () => {
    const path = newPath();
    writeFileSync(path, change({ transport: "inproc" }));
    expect(await rejectionOf(readConnectionFile(path, { timeoutMs: 60_000 }))).toMatchObject({
      field: "transport",
    });
  });

  test("gives up after its time with what is missing, and at once when aborted", async () => {
    const path = newPath();
    expect(await rejectionOf(readConnectionFile(path, { timeoutMs: 20 }))).toMatchObject({ path });
    const abort = new AbortController();
    const reading = readConnectionFile(path, { timeoutMs: 60_000, signal: abort.signal });
    abort.abort();
    expect(await rejectionOf(reading)).toBeInstanceOf(AbortedError);
  });
});

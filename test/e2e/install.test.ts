import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { archiveName, makeRelease } from "../../scripts/lib/release.ts";
import { hostTarget } from "../../scripts/lib/targets.ts";
import { sha256 } from "../../scripts/lib/wheel-lock.ts";
import { TempDir } from "../support/temp-dir.ts";

const EXECUTABLE = resolve(import.meta.dir, "../../dist/prime-agent");
const TOOLS = [
  ...["uname", "grep", "sed", "head", "tail", "mktemp", "mkdir", "chmod", "mv", "rm", "cut", "cat"],
  ...["sha256sum", "tar", "xz"],
];
/** The real program, and two that are only scripts. */
const REAL = "0.1.0";
const NEWER = "0.2.0";
const BROKEN = "0.3.0";

/** What was released as {@link REAL}; the build itself may be replaced while this runs. */
let realSha256 = "";

/** A release server on this machine, with what it was asked for. */
class ReleaseServer implements Disposable {
  readonly folder = new TempDir();
  readonly requests: string[] = [];
  readonly #server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      this.requests.push(pathname);
      const file = Bun.file(this.folder.join(pathname));
      return (await file.exists()) ? new Response(file) : new Response("", { status: 404 });
    },
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/releases`;
  }

  /** Releases a program for this machine and its baseline. */
  async release(
    version: string,
    build: (outfile: string) => void,
    targets = [hostTarget(), `${hostTarget()}-baseline`],
  ): Promise<void> {
    await makeRelease({
      version,
      targets,
      folder: this.folder.join("releases"),
      url: this.url,
      compression: 0,
      build: async (_, outfile) => build(outfile),
    });
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
    this.folder[Symbol.dispose]();
  }
}

let server: ReleaseServer;

beforeAll(async () => {
  server = new ReleaseServer();
  const script = (text: string) => (outfile: string) =>
    writeFileSync(outfile, `#!/bin/sh\n${text}\n`);
  await server.release(BROKEN, script("echo 'not for this processor' >&2; exit 132"));
  await server.release(NEWER, script("echo prime-agent 0.2.0"));
  await server.release(REAL, (outfile) => copyFileSync(EXECUTABLE, outfile), [hostTarget()]);
  const manifest = await Bun.file(server.folder.join("releases", REAL, "manifest.json")).json();
  realSha256 = manifest.archives[0].executableSha256;
}, 120_000);

afterAll(() => server[Symbol.dispose]());

/** A user without anything but a home and the tools that are named. */
class User implements Disposable {
  readonly folder = new TempDir();
  readonly bin = this.folder.join("home/.local/bin");
  readonly program = join(this.bin, "prime-agent");
  readonly env: Record<string, string> = {
    HOME: this.folder.join("home"),
    PATH: this.folder.join("tools"),
    PRIME_AGENT_RELEASE_URL: server.url,
  };

  constructor(downloader = "curl") {
    mkdirSync(this.folder.join("tools"));
    for (const tool of [...TOOLS, downloader]) {
      // Where busybox is all there is, its wget is a link to it.
      const name = tool === "busybox" ? "wget" : tool;
      symlinkSync(Bun.which(tool) ?? `/nonexistent/${tool}`, this.folder.join("tools", name));
    }
  }

  /** Replaces a tool by a script. */
  fake(tool: string, script: string): void {
    const path = this.folder.write(`fakes/${tool}`, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    this.env["PATH"] = `${this.folder.join("fakes")}:${this.folder.join("tools")}`;
  }

  /** Runs the installer that the server offers, as `curl … | sh -s -- ARGUMENTS` does. */
  async install(
    options: { shell?: string[]; args?: string[]; script?: string } = {},
  ): Promise<{ code: number; out: string; err: string }> {
    const { shell = ["sh"], args = [] } = options;
    const script =
      options.script ?? readFileSync(server.folder.join("releases/install.sh"), "utf8");
    const [program = "sh", ...shellArgs] = shell;
    const command = [Bun.which(program) ?? program, ...shellArgs, "-s", "--", ...args];
    return await this.run(command, script);
  }

  /** Runs a command to its end with `input` on stdin. */
  async run(
    command: readonly string[],
    input = "",
  ): Promise<{ code: number; out: string; err: string }> {
    const child = Bun.spawn([...command], {
      env: this.env,
      cwd: "/",
      stdin: new Blob([input]),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, code] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { code, out, err };
  }

  /** Installs and expects one line of complaint, and that nothing changed. */
  async expectFailure(line: string, args: string[] = []): Promise<void> {
    const before = existsSync(this.program) ? readFileSync(this.program, "utf8") : undefined;
    const { code, err } = await this.install({ args });
    expect(err).toBe(`install: ${line}\n`);
    expect(code).toBe(1);
    const after = existsSync(this.program) ? readFileSync(this.program, "utf8") : undefined;
    expect(after).toBe(before);
    expect(existsSync(this.bin) ? readdirSync(this.bin) : []).toEqual(
      before ? ["prime-agent"] : [],
    );
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

describe("installing", () => {
  const ways = [
    { name: "dash with curl", shell: ["dash"], downloader: "curl", version: REAL },
    {
      name: "busybox sh with its wget",
      shell: ["busybox", "sh"],
      downloader: "busybox",
      version: REAL,
    },
    { name: "dash with wget", shell: ["dash"], downloader: "wget", version: NEWER },
    { name: "bash with curl", shell: ["bash"], downloader: "curl", version: NEWER },
  ];
  for (const { name, shell, downloader, version } of ways) {
    const absent = [...shell.slice(0, 1), downloader].find((tool) => !Bun.which(tool));
    if (absent) console.warn(`skipped: installing by ${name}: ${absent} is missing`);
    test.skipIf(absent !== undefined)(
      `${version} by ${name} replaces what is there`,
      async () => {
        using user = new User(downloader);
        await user.install({ shell, args: ["--version", NEWER] });
        const { code, out, err } = await user.install({ shell, args: ["--version", version] });
        expect({ code, err }).toEqual({ code: 0, err: "" });
        expect(out.split("\n")).toEqual([
          `Downloading prime-agent ${version} for ${hostTarget()}`,
          `Installed prime-agent ${version} as ${user.program}`,
          `Next: add ${user.bin} to your PATH, then: prime-agent demo`,
          "",
        ]);
        expect(readdirSync(user.bin)).toEqual(["prime-agent"]);
        if (version === REAL) expect(sha256(readFileSync(user.program))).toBe(realSha256);
      },
      60_000,
    );
  }

  test("without a version the latest is installed", async () => {
    using user = new User();
    writeFileSync(server.folder.join("releases/latest"), `${NEWER}\n`);
    const { out } = await user.install();
    writeFileSync(server.folder.join("releases/latest"), `${REAL}\n`);
    expect(out).toContain(`Installed prime-agent ${NEWER}`);
  });

  test("without xz, python3 unpacks", async () => {
    using user = new User();
    user.fake("tar", "exit 1");
    symlinkSync(Bun.which("python3") ?? "", user.folder.join("tools/python3"));
    user.env["PATH"] += ":/usr/bin:/bin";
    expect((await user.install({ args: ["--version", NEWER] })).code).toBe(0);
  });

  test("a version is pinned by option or variable, and the option wins", async () => {
    using user = new User();
    user.env["PRIME_AGENT_VERSION"] = BROKEN;
    const { out } = await user.install({ args: [`--version=v${NEWER}`] });
    expect(out).toContain(`Installed prime-agent ${NEWER}`);
  });

  test("another folder is honoured, and one on PATH needs no advice", async () => {
    using user = new User();
    const folder = user.folder.join("my programs");
    Object.assign(user.env, {
      PRIME_AGENT_INSTALL_DIR: folder,
      PATH: `${user.env["PATH"]}:${folder}`,
    });
    const { out } = await user.install({ args: ["--version", NEWER] });
    expect(out).toEndWith(
      `Installed prime-agent ${NEWER} as ${folder}/prime-agent\nNext: prime-agent demo\n`,
    );
  });

  test("a processor without AVX2 gets the baseline build", async () => {
    using user = new User();
    user.fake("grep", "exit 1");
    const { out } = await user.install({ args: ["--version", NEWER] });
    expect(out).toStartWith(`Downloading prime-agent ${NEWER} for ${hostTarget()}-baseline\n`);
  });

  test("the installed program replaces itself by a released one, or stays as it is", async () => {
    using user = new User();
    await user.install({ args: ["--version", REAL] });
    const failed = await user.run([user.program, "update", BROKEN]);
    expect(failed.err).toContain("the program does not run on this machine");
    expect(failed.code).toBe(1);
    expect(sha256(readFileSync(user.program))).toBe(realSha256);
    const done = await user.run([user.program, "update", NEWER]);
    expect(done.out).toContain(`Installed prime-agent ${NEWER} as ${user.program}`);
    expect(readFileSync(user.program, "utf8")).toContain("echo prime-agent 0.2.0");
    expect(readdirSync(user.bin)).toEqual(["prime-agent"]);
  }, 60_000);

  test("a script that was cut off while downloading does nothing", async () => {
    using user = new User();
    const script = readFileSync(server.folder.join("releases/install.sh"), "utf8");
    for (const share of [0.3, 0.6, 0.9, 0.99]) {
      await user.install({ script: script.slice(0, Math.floor(script.length * share)) });
      expect(existsSync(user.bin)).toBe(false);
    }
  });
});

describe("an installation that fails says why in one line and changes nothing:", () => {
  /** A user who has the newer version. */
  async function newerUser(): Promise<User> {
    const user = new User();
    await user.install({ args: ["--version", NEWER] });
    return user;
  }

  test("a wrong checksum", async () => {
    using user = await newerUser();
    const archive = archiveName(BROKEN, hostTarget());
    const path = server.folder.join("releases", BROKEN, archive);
    const intact = readFileSync(path);
    writeFileSync(path, Buffer.concat([intact, Buffer.from("x")]));
    await user.expectFailure(`the checksum of ${archive} is wrong; nothing was installed`, [
      "--version",
      BROKEN,
    ]);
    writeFileSync(path, intact);
  });

  test("a program that does not run here", async () => {
    using user = await newerUser();
    await user.expectFailure("the program does not run on this machine: not for this processor", [
      "--version",
      BROKEN,
    ]);
  });

  test("a version that does not exist", async () => {
    using user = await newerUser();
    const { code, err } = await user.install({ args: ["--version", "9.9.9"] });
    expect(code).toBe(1);
    expect(err).toMatch(/^install: there is no version 9\.9\.9 at .*404.*\n$/);
  });

  test("no network", async () => {
    using user = new User();
    user.env["PRIME_AGENT_RELEASE_URL"] = "http://127.0.0.1:9/releases";
    const { code, err } = await user.install();
    expect(code).toBe(1);
    expect(err).toMatch(
      /^install: can't reach http:\/\/127\.0\.0\.1:9\/releases\/latest \(.+\)\n$/,
    );
    expect(readdirSync(user.bin)).toEqual([]);
  });

  test.each([
    [
      "another system",
      'case "$1" in -s) echo Plan9 ;; *) echo x86_64 ;; esac',
      "there is no build for Plan9; Linux and macOS are supported",
    ],
    [
      "another processor",
      'case "$1" in -s) echo Linux ;; *) echo riscv64 ;; esac',
      "there is no build for Linux on riscv64",
    ],
  ])("%s", async (_, uname, line) => {
    using user = new User();
    user.fake("uname", uname);
    await user.expectFailure(line);
  });

  test("a build that this version does not have", async () => {
    using user = new User();
    user.fake("uname", 'case "$1" in -s) echo Linux ;; *) echo aarch64 ;; esac');
    await user.expectFailure(`version ${REAL} was not built for linux-arm64`);
  });

  test("a folder that can't be made", async () => {
    using user = new User();
    const folder = join(user.folder.write("file", ""), "bin");
    user.env["PRIME_AGENT_INSTALL_DIR"] = folder;
    await user.expectFailure(`can't make the folder ${folder}; set PRIME_AGENT_INSTALL_DIR`);
  });

  test("neither HOME nor a folder", async () => {
    using user = new User();
    delete user.env["HOME"];
    await user.expectFailure("HOME is not set; set PRIME_AGENT_INSTALL_DIR to where it should go");
  });

  test("an unknown option", async () => {
    using user = new User();
    await user.expectFailure("unknown option --prefix (known: --version VERSION)", ["--prefix"]);
  });
});

import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { TempDir } from "../../support/temp-dir.ts";

const ORPHANS = resolve(import.meta.dir, "../../../src/kernel/orphans.ts");

/**
 * Run as process 1: leaves an orphan and a child of its own, then tells how the child ended and which
 * processes are zombies once the orphan is gone or has been there for several looks.
 */
const SCRIPT = `
import { readdirSync, readFileSync } from "node:fs";
import { collectOrphans } from ${JSON.stringify(ORPHANS)};
collectOrphans();
Bun.spawnSync(["sh", "-c", "sleep 0.2 & exit 0"]);
const child = Bun.spawn(["sh", "-c", "sleep 0.3; exit 7"]);
const code = await child.exited;
const states = () =>
  readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name)).map((pid) => {
    try {
      return readFileSync("/proc/" + pid + "/stat", "utf8").split(") ").at(-1)[0];
    } catch {
      return "gone";
    }
  });
const seen = [];
for (let look = 0; look < 300 && (look === 0 || states().includes("Z")); look += 1) {
  seen.push(states().includes("Z"));
  await Bun.sleep(100);
}
console.log(JSON.stringify({ pid: process.pid, code, zombieAtFirst: seen[0], zombieAtLast: states().includes("Z") }));
`;

const canUnshare = Bun.spawnSync(["unshare", "--pid", "--fork", "--mount-proc", "true"]).success;
if (!canUnshare) console.warn("skipped: process 1 collects orphans: unshare is not allowed here");

test.skipIf(!canUnshare)(
  "process 1 collects orphans and leaves its own children to Bun",
  async () => {
    using folder = new TempDir();
    const script = folder.write("first.ts", SCRIPT);
    const command = ["unshare", "--pid", "--fork", "--mount-proc", process.execPath, script];
    const child = Bun.spawn(command, { stdout: "pipe", stderr: "inherit" });
    expect(JSON.parse(await child.stdout.text())).toEqual({
      pid: 1,
      code: 7,
      zombieAtFirst: true,
      zombieAtLast: false,
    });
  },
);

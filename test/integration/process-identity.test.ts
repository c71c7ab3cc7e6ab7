import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { processStartTime } from "../../src/process-identity.ts";

// Reads the state from /proc itself, so that the test doesn't trust what it tests.
test.skipIf(process.platform !== "linux")("a zombie counts as gone", async () => {
  // The shell becomes `cat`, which never collects the child that the shell left to it.
  await using parent = Bun.spawn(["sh", "-c", "true & echo $!; exec cat"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  const { value } = await parent.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  while (!readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")) await Bun.sleep(1);
  expect(processStartTime(parent.pid)).toBeString();
  expect(processStartTime(pid)).toBeUndefined();
});

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { processStartTime } from "../../src/process-identity.ts";

// Reads the state from /proc itself, so that the test doesn't trust what it tests.
test.skipIf(process.platform !== "linux")("a zombie counts as gone", async () => {
  // Not a shell, which may collect its child at any moment.
  const program =
    "import os, sys; pid = os.fork() or os._exit(0); print(pid, flush=True); sys.stdin.read()";
  await using parent = Bun.spawn(["python3", "-c", program], {
    stdin: "pipe",
    stdout: "pipe",
  });
  const { value } = await parent.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  while (!readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ")) await Bun.sleep(1);
  expect(processStartTime(parent.pid)).toBeString();
  expect(processStartTime(pid)).toBeUndefined();
});

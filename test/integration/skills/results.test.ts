/** What the built-in skills leave in the result of a call, for the model and for everybody else. */

import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { discoverSkills } from "../../../src/agent/skills.ts";
import { buildRlmBootstrapCode } from "../../../src/kernel/bootstrap.ts";
import { describeWithPython, type PythonName } from "../../support/python.ts";
import { textOf, ToolKernel, type ToolKernelOptions } from "../../support/tool-kernel.ts";

const RECEIPT = {
  id: "m1",
  message: "hi",
  deliveryStatus: "delivered",
  target: { activeSessionId: "a1", sessionId: "s1" },
};

/** A real image of one pixel. */
const PIXEL_GIF = "R0lGODdhAQABAIAAAP///////ywAAAAAAQABAAACAkQBADs=";

/** A kernel with the built-in skills, found and loaded as the program does it. */
async function start(python: PythonName, options: ToolKernelOptions = {}): Promise<ToolKernel> {
  const kernel = new ToolKernel({ python, ...options });
  const { skills } = discoverSkills({
    cwd: kernel.dir.path,
    home: kernel.dir.path,
    userHome: undefined,
    repositoryRoot: undefined,
    paths: [],
    builtinDir: resolve(import.meta.dir, "../../../kernel/skills"),
    discover: true,
    trustProject: false,
  });
  const loaded = skills.flatMap(({ name, python: code }) =>
    code ? [{ name, import_name: code.importName, path: code.sourceDir }] : [],
  );
  await kernel.run(buildRlmBootstrapCode({ skills: loaded, depth: 0, max_depth: 1 }));
  return kernel;
}

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test("edits become diffs, and the model reads a line for each", async () => {
      await using kernel = await start(python);
      const path = kernel.dir.write("a.txt", "one\r\ntwo\r\n");
      const result = await kernel.run('await edit("a.txt", "one\\ntwo", "1\\n2")');
      expect(textOf(result)).toBe(`edited ${path}, lines 1-2`);
      expect(result.details.diffs).toEqual([
        { path, old_str: "one\ntwo", new_str: "1\n2", start_line: 1 },
      ]);
      expect(await Bun.file(path).text()).toBe("1\r\n2\r\n");
    });

    test("an edit that fails is an error that shows the cell's line and where the text may be", async () => {
      await using kernel = await start(python);
      const path = kernel.dir.write("a.txt", "timeout = 10\n");
      const result = await kernel.run('await edit("a.txt", "timeout = 20", "timeout = 30")');
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(/----> 1 await edit\(.*\n\nEditError: /);
      expect(textOf(result)).toEndWith(
        `EditError: ${path}: old_str does not occur\n` +
          "line 1 is similar (- old_str, + file):\n-timeout = 20\n+timeout = 10",
      );
      expect(result.details.diffs).toEqual([]);
    });

    test("an attached file becomes an image block", async () => {
      await using kernel = await start(python);
      const path = kernel.dir.join("pixel.gif");
      await Bun.write(path, Buffer.from(PIXEL_GIF, "base64"));
      const result = await kernel.run('await attach_image("pixel.gif")');
      expect(result.content).toEqual([
        { type: "text", text: `attached ${path} (GIF, 1×1)` },
        { type: "image", mimeType: "image/gif", data: PIXEL_GIF },
      ]);
      expect(result.details.attachments).toEqual([
        { mime_type: "image/gif", path, chars: PIXEL_GIF.length },
      ]);
    });

    test("a sent message leaves its receipt, and one that is sent after its cell comes late", async () => {
      const late = Promise.withResolvers<unknown>();
      const answered = Promise.withResolvers<object>();
      await using kernel = await start(python, {
        handlers: {
          "agent_message.send": (payload) =>
            payload["message"] === "hi" ? RECEIPT : answered.promise,
        },
        onLateReceipt: late.resolve,
      });
      const sent = await kernel.run('await agent_message.send("hi", receiver_role="parent")');
      expect(sent.details.sentAgentMessages).toEqual([RECEIPT]);
      const begun = await kernel.run(
        'task = asyncio.create_task(agent_message.send("later", receiver_role="parent"))\n' +
          "await asyncio.sleep(0)",
      );
      expect(begun.details.sentAgentMessages).toEqual([]);
      answered.resolve({ ...RECEIPT, id: "m2" });
      expect(await late.promise).toEqual({ ...RECEIPT, id: "m2" });
    });
  });
}

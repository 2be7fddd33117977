import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel } from "../../../src/entries/testing.ts";
import { fileTools } from "../../../src/entries/tools.ts";
import { restoreFilesRoute } from "../../../src/surfaces/server/routes/restore-files.ts";
import { tempFolder } from "../../capabilities/tools/call-tool.ts";
import { startServer } from "./test-server.ts";

test("POST /api/sessions/ID/restore-files shows what would change, then restores it, for the owner of the server only", async () => {
  const root = await tempFolder();
  const file = join(root, "a.txt");
  await writeFile(file, "old\n");
  const edit = { name: "edit", input: { path: "a.txt", oldText: "old", newText: "new" } };
  const agent = new Agent({
    name: "editor",
    model: scriptedModel([{ toolCalls: [edit] }, "done"]),
    tools: fileTools({ root }),
  });
  const routes = [restoreFilesRoute({ folders: [root] })];
  const server = await startServer([agent], { routes, runtimeOptions: { unknownPrice: "ignore" } });
  try {
    const run = await server.runtime.submit(agent, "Work.", { sessionId: "chat" });
    await run.result();
    const [entry] = await server.runtime.sessions.path("chat");
    const path = "/api/sessions/chat/restore-files";
    const body = { entryId: entry?.id ?? "" };

    const preview = await server.call("POST", path, { body });
    expect(preview.json).toMatchObject({
      files: [{ path: file, state: "restorable", wasAbsent: false }],
      erased: 0,
      otherCalls: [],
    });
    expect(preview.text).toContain("-new\\n+old\\n");
    expect(await readFile(file, "utf8")).toBe("new\n");

    const tenant = await server.tokenOf("acme", "admin");
    expect((await server.call("POST", path, { body, token: tenant })).status).toBe(403);
    expect((await server.call("POST", path, { body: { entryId: "nowhere" } })).status).toBe(404);
    expect((await server.call("POST", path, { body: { ...body, aply: true } })).status).toBe(400);
    expect(await readFile(file, "utf8")).toBe("new\n");

    const restored = await server.call("POST", path, { body: { ...body, apply: true } });
    expect(restored.json).toMatchObject({ files: [{ path: file, state: "restored" }] });
    expect(await readFile(file, "utf8")).toBe("old\n");
  } finally {
    await server.close();
  }
});

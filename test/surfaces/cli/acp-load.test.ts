import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openEditor } from "./editor.ts";
import { env, setUp } from "./model-server.ts";

test("reeve acp answers the running prompt of a session that does not exist in the folder in which it is loaded", async () => {
  const { folder, url, asked } = await setUp(() => undefined);
  const other = join(folder, "other");
  await mkdir(other);
  const editor = await openEditor({ cwd: folder, env: env(url) });
  const sessionId = (await editor.agent.request("session/new", { cwd: folder, mcpServers: [] })).sessionId;
  const prompt = (text: string) =>
    editor.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  const answer = prompt("Never answered.");
  await asked(1);
  const load = { sessionId, cwd: other, mcpServers: [] };
  await expect(editor.agent.request("session/load", load)).rejects.toMatchObject({
    data: { code: "not_found" },
  });
  // The prompt is still open: a second one is refused.
  await expect(prompt("Too early.")).rejects.toMatchObject({
    data: { code: "agent_busy" },
  });
  await editor.agent.notify("session/cancel", { sessionId });
  expect(await answer).toEqual({ stopReason: "cancelled" });
});

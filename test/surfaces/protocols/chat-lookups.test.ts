import { expect, it, onTestFinished, vi } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { sessionOfAnn, startServer, type TestServer } from "../server/test-server.ts";
import { endlessModel } from "./endless-model.ts";

const echo = new Agent({ name: "echo", model: endlessModel(() => "Done.") });

it("a chat of the AI SDK reads no events of earlier runs to find out that a message is new", async () => {
  const server = await startServer([echo]);
  onTestFinished(() => server.close());
  const token = await server.tokenOf("acme", "run", "ann");
  const view = server.runtime.forTenant({ tenantId: "acme", userId: "ann" });
  const sessionId = "many-runs";
  const message = (text: string) => ({ id: `new-${text}`, role: "user", parts: [{ type: "text", text }] });
  const post = (messages: readonly unknown[], more: object = {}): ReturnType<TestServer["call"]> =>
    server.call("POST", "/api/chat", { token, body: { id: sessionId, messages, agent: "echo", ...more } });
  for (const text of ["a", "b", "c"]) await post([message(text)]);
  const earlier = (await view.list({ sessionId: await sessionOfAnn(view, sessionId) })).runs.map(
    ({ runId }) => runId,
  );
  const read = vi.spyOn(server.store.events, "read");
  // Both messages are looked for: the first one because it may have been sent before, the second one as an edit.
  const { status } = await post([message("d"), message("e")], { messageId: "new-e" });
  const readRuns = read.mock.calls.map(([runId]) => runId);
  read.mockRestore();
  expect([status, earlier.length]).toEqual([200, 3]);
  expect(readRuns.filter((runId) => earlier.includes(runId))).toEqual([]);
  const { status: unknown } = await post([message("f")], { trigger: "regenerate-message" });
  expect(unknown).toBe(404);
});

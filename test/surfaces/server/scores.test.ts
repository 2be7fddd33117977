import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { startServer } from "./test-server.ts";

it("a run is scored over HTTP by the user of the token, listed with its scores, and found by them", async () => {
  const clerk = new Agent({ name: "clerk", model: scriptedModel(["Done."]) });
  const server = await startServer([clerk]);
  onTestFinished(() => server.close());
  const [ann, reader, foreign] = [
    await server.tokenOf("acme", "run", "ann"),
    await server.tokenOf("acme", "read"),
    await server.tokenOf("other", "run"),
  ];
  const { json } = await server.call("POST", "/api/runs", {
    token: ann,
    body: { agent: "clerk", input: "Go." },
  });
  const { runId } = json["run"] as { readonly runId: string };
  await (await server.runtime.find(runId))?.result();
  const path = `/api/runs/${encodeURIComponent(runId)}/scores`;
  const down = { name: "thumbs", value: 0, comment: "too short" };

  const refused = [
    await server.call("POST", path, { token: reader, body: down }),
    await server.call("POST", path, { token: foreign, body: down }),
    await server.call("GET", path, { token: foreign }),
    await server.call("POST", path, { token: ann, body: { name: "thumbs", value: 2 } }),
    await server.call("POST", path, { token: ann, body: { ...down, by: "bob" } }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([403, 404, 404, 400, 400]);

  const scored = await server.call("POST", path, { token: ann, body: down });
  expect(scored.status).toBe(200);
  expect(scored.json["scores"]).toMatchObject([{ name: "thumbs", value: 0, by: "ann" }]);
  await server.call("POST", path, { token: ann, body: { name: "thumbs", value: 1 } });
  const { json: all } = await server.call("GET", path, { token: reader });
  expect(all["scores"]).toMatchObject([
    { value: 0, comment: "too short", replacedAt: expect.any(Number) as number },
    { value: 1, comment: null, replacedAt: null },
  ]);

  const found = async (query: string): Promise<number> => {
    const { json: page } = await server.call("GET", `/api/runs?${query}`, { token: reader });
    return (page["runs"] as readonly unknown[]).length;
  };
  expect([
    await found("score=thumbs"),
    await found("score=thumbs&scoreAbove=0.5"),
    await found("score=thumbs&scoreBelow=0.5"),
  ]).toEqual([1, 1, 0]);
  const nameless = await server.call("GET", "/api/runs?scoreBelow=0.5", { token: reader });
  expect([nameless.status, nameless.json["detail"]]).toEqual([400, expect.stringContaining("score=NAME")]);
});

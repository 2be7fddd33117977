import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { Fault, type RunHandle } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { startServer, type TestServer } from "./test-server.ts";

interface Preview {
  readonly runIds: readonly string[];
  readonly refused: readonly { readonly reason: string; readonly runIds: readonly string[] }[];
  readonly atMostUsd: number | null;
}

const asking = tool({
  name: "ask",
  description: "Asks a person.",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "Asked.",
});

/** A server with runs that completed, failed, stopped at their money, and wait. */
async function serverWithRuns(): Promise<{
  readonly server: TestServer;
  readonly runs: Readonly<Record<"done" | "failed" | "poor" | "waiting", string>>;
}> {
  const agents = [
    new Agent({ name: "clerk", model: scriptedModel(["Done.", "Again."]) }),
    new Agent({
      name: "breaker",
      model: scriptedModel([{ error: new Fault("internal", "refused the key") }, "Works now."]),
      budget: { maxCostUsd: 3 },
    }),
    new Agent({ name: "poor", model: scriptedModel(["Never."]), budget: { maxCostUsd: 0.000_001 } }),
    new Agent({
      name: "asker",
      model: scriptedModel([{ toolCalls: [{ name: "ask", input: {} }] }, "Done."]),
      tools: [asking],
    }),
  ];
  const server = await startServer(agents, {
    store: memoryStore({ hash: sha256 }),
    runtimeOptions: { prices: { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) } },
  });
  onTestFinished(() => server.close());
  const start = async (agent: string): Promise<RunHandle> => {
    const { json } = await server.call("POST", "/api/runs", {
      body: { agent, input: "Go.", metadata: { case: "orders" } },
    });
    const run = await server.runtime.find((json["run"] as { readonly runId: string }).runId);
    if (run === undefined) throw new Error(`the run of ${agent} does not exist`);
    return run;
  };
  const [done, failed, poor, waiting] = [
    await start("clerk"),
    await start("breaker"),
    await start("poor"),
    await start("asker"),
  ];
  for (const run of [done, failed, poor]) await run.result();
  for await (const event of waiting.events({ types: ["approval_request"] }))
    if (event.type === "approval_request") break;
  return {
    server,
    runs: { done: done.runId, failed: failed.runId, poor: poor.runId, waiting: waiting.runId },
  };
}

async function previewOf(server: TestServer, body: Record<string, unknown>): Promise<Preview> {
  const { status, json } = await server.call("POST", "/api/run-orders/preview", { body: body });
  expect(status).toBe(200);
  return json as unknown as Preview;
}

it("the preview of an order for many runs says which runs the order changes, lists others by reason, and changes nothing", async () => {
  const { server, runs } = await serverWithRuns();
  const filter = { metadata: ["case=orders"] };
  const resumed = await previewOf(server, { order: "resume", filter });
  expect(resumed.runIds).toEqual([runs.failed]);
  expect(resumed.atMostUsd).toBe(3);
  expect(new Map(resumed.refused.map(({ reason, runIds }) => [reason, runIds]))).toEqual(
    new Map([
      ["The run is not stopped.", [runs.waiting]],
      ["The run would stop again at once: it needs money.", [runs.poor]],
      ["The run has completed.", [runs.done]],
    ]),
  );
  const cancelled = await previewOf(server, { order: "cancel", filter });
  expect([cancelled.runIds, cancelled.refused]).toEqual([
    [runs.waiting],
    [{ reason: "The run has already ended.", runIds: [runs.poor, runs.failed, runs.done] }],
  ]);
  const { json } = await server.call("GET", "/api/run-count?metadata=case=orders&status=waiting");
  expect(json).toEqual({ count: 1, isMore: false });
});

it("an order for many runs changes only the given runs, not others that match the filter of its preview later", async () => {
  const { server, runs } = await serverWithRuns();
  const filter = { metadata: ["case=orders"], status: ["completed"] };
  const { runIds } = await previewOf(server, { order: "delete", filter });
  expect(runIds).toEqual([runs.done]);
  const { json: started } = await server.call("POST", "/api/runs", {
    body: { agent: "clerk", input: "Later.", metadata: { case: "orders" } },
  });
  const late = (started["run"] as { readonly runId: string }).runId;
  await (await server.runtime.find(late))?.result();
  const { json } = await server.call("POST", "/api/run-orders", {
    body: { order: "delete", runIds },
  });
  expect(json).toEqual({ runIds: [runs.done], refused: [], count: 1 });
  expect(await server.runtime.find(runs.done)).toBeUndefined();
  expect(await server.runtime.find(late)).toBeDefined();
});

it("an order for many runs checks each run again, and a repeated order refuses runs that it has changed", async () => {
  const { server, runs } = await serverWithRuns();
  const order = (body: Record<string, unknown>) => server.call("POST", "/api/run-orders", { body: body });
  const { json } = await order({ order: "delete", runIds: [runs.done, runs.waiting, "run_unknown"] });
  expect(json).toEqual({
    runIds: [runs.done],
    refused: [
      { reason: "The run has not ended. Cancel it first.", runIds: [runs.waiting] },
      { reason: "The run does not exist any more.", runIds: ["run_unknown"] },
    ],
    count: 1,
  });
  await order({ order: "cancel", runIds: [runs.waiting] });
  await (await server.runtime.find(runs.waiting))?.result();
  const again = await order({ order: "cancel", runIds: [runs.waiting] });
  expect(again.json["refused"]).toEqual([{ reason: "The run has already ended.", runIds: [runs.waiting] }]);
  const { json: resumed } = await order({ order: "resume", runIds: [runs.failed] });
  expect(resumed["count"]).toBe(1);
});

it("an order for more than 200 runs is refused with the number", async () => {
  const { server } = await serverWithRuns();
  const runIds = Array.from({ length: 312 }, (_each, at) => `run_${at}`);
  for (const path of ["/api/run-orders", "/api/run-orders/preview"]) {
    const { status, json } = await server.call("POST", path, { body: { order: "cancel", runIds } });
    expect(status).toBe(400);
    expect(JSON.stringify(json)).toContain("312 runs were chosen, and an order takes at most 200");
  }
});

import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { workflow } from "../../../src/entries/workflow.ts";
import { startServer } from "./test-server.ts";

const order = workflow("order", { input: z.object({ cents: z.number() }) }, async (ctx, { cents }) => {
  const paid = await ctx.waitForSignal("paid");
  return { cents, paid: paid ?? null };
});

test("a caller starts a workflow, sends it a signal and reads its output; a wrong input starts nothing", async () => {
  const server = await startServer([order]);
  onTestFinished(() => server.close());
  const start = (input: object) =>
    server.call("POST", "/api/runs", {
      body: { agent: "order", input },
      headers: { "idempotency-key": "7" },
    });
  const refused = await start({ cents: "900" });
  expect(refused).toMatchObject({
    status: 400,
    json: { detail: expect.stringContaining("invalid input of workflow order: cents") },
  });
  expect((await server.call("GET", "/api/runs?kind=workflow")).json["runs"]).toEqual([]);
  const { status, json } = await start({ cents: 900 });
  const { runId, kind } = json["run"] as { readonly runId: string; readonly kind: string };
  expect([status, kind]).toEqual([201, "workflow"]);
  const steered = await server.call("POST", `/api/runs/${runId}/steer`, { body: { input: "more" } });
  expect(steered).toMatchObject({ status: 400, json: { detail: expect.stringContaining("use signal()") } });
  await server.call("POST", `/api/runs/${runId}/signal`, { body: { name: "paid", value: 900 } });
  const result = await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`);
  expect(result.json["output"]).toEqual({ cents: 900, paid: 900 });
});

// An order as a durable function: it reserves, waits for the payment, starts a shipment, which is a workflow of its own, and lets an
// agent write a note meanwhile. The process ends while the payment is awaited; the next one continues, and reserves nothing twice.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, openRuntime } from "reeve";
import { scriptedModel } from "reeve/testing";
import { workflow } from "reeve/workflow";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "reeve-workflow-"));
const store = `sqlite:${join(folder, "reeve.db")}` as const;
const effects: string[] = [];

const clerk = new Agent({ name: "clerk", model: scriptedModel(["Thank you for your order."]) });

const shipment = workflow(
  "shipment",
  { input: z.object({ orderId: z.string(), parcels: z.array(z.string()) }), output: z.array(z.string()) },
  async (ctx, { orderId, parcels }) => {
    const sent = await ctx.map(parcels, (parcel, branch) =>
      branch.step("send", () => {
        effects.push(`ship ${orderId} ${parcel}`);
        return `parcel-${orderId}-${parcel}`;
      }),
    );
    return sent.map((each) => (each.status === "fulfilled" ? each.value : each.reason.message));
  },
);

const order = workflow(
  "order",
  {
    input: z.object({ orderId: z.string(), cents: z.number().int() }),
    output: z.object({ note: z.string(), tracking: z.array(z.string()) }),
    agents: [clerk, shipment],
  },
  async (ctx, { orderId, cents }) => {
    await ctx.step("reserve", ({ idempotencyKey }) => {
      effects.push(`reserve ${orderId} for ${cents}`);
      return { idempotencyKey };
    });
    await ctx.waitForSignal("paid");
    const parcels = await ctx.start(
      shipment,
      { orderId, parcels: ["a", "b"] },
      { id: `shipment-${orderId}` },
    );
    const note = await ctx.agent(clerk, `Write a note for order ${orderId}.`);
    return { note, tracking: await parcels.result() };
  },
);

const first = await openRuntime({ store });
// The compiler refuses a wrong input. One that comes from outside is refused by the schema, before a run exists.
const fromOutside: { orderId: string; cents: number } = JSON.parse('{ "orderId": "7" }');
await assert.rejects(first.start(order, fromOutside), /invalid input of workflow order: cents/u);
const { runId } = await first.start(order, { orderId: "7", cents: 900 }, { runId: "run_order-7" });
await first.close();

const second = await openRuntime({ store });
const run = await second.start(order, { orderId: "7", cents: 900 }, { runId }); // the same run
await run.signal("paid");
const result = await run.result();
assert.equal(result.status, "completed");
console.log(result.output.note, result.output.tracking, effects);
assert.deepEqual(result.output.tracking, ["parcel-7-a", "parcel-7-b"]);
assert.deepEqual(effects.toSorted(), ["reserve 7 for 900", "ship 7 a", "ship 7 b"]);
await second.close();
rmSync(folder, { recursive: true, force: true });

// An order as a durable function: it reserves, waits for the payment, lets an agent write a note and ships. The process ends while the
// payment is awaited; the next one continues, and reserves nothing twice.
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

const order = workflow(
  "order",
  {
    input: z.object({ orderId: z.string(), cents: z.number().int() }),
    output: z.object({ note: z.string(), tracking: z.string() }),
    agents: [clerk],
  },
  async (ctx, { orderId, cents }) => {
    await ctx.step("reserve", ({ idempotencyKey }) => {
      effects.push(`reserve ${orderId} for ${cents}`);
      return { idempotencyKey };
    });
    await ctx.waitForSignal("paid");
    const note = await ctx.agent(clerk, `Write a note for order ${orderId}.`);
    const tracking = await ctx.step("ship", async () => {
      effects.push(`ship ${orderId}`);
      return `parcel-${orderId}`;
    });
    return { note, tracking };
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
assert.deepEqual(effects, ["reserve 7 for 900", "ship 7"]);
await second.close();
rmSync(folder, { recursive: true, force: true });

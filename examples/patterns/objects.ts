// State by key: a cart of each customer, with one writer per key. A worker hosts the cart and the checkout. A client, which would be a
// web server or a script, calls them without executing anything. Calls of one cart run one at a time, and a repeated id adds nothing.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClient, openRuntime } from "reeve";
import { handler, object, shared, workflow } from "reeve/workflow";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "reeve-objects-"));
const store = `sqlite:${join(folder, "reeve.db")}` as const;
const charges: string[] = [];

const cart = object(
  "cart",
  { state: z.object({ cents: z.number() }).default({ cents: 0 }) },
  {
    add: handler({ input: z.number().int().positive() }, async (ctx, cents) => {
      ctx.setState({ cents: ctx.state.cents + cents });
      return ctx.state.cents;
    }),
    pay: async (ctx) => {
      const { cents } = ctx.state;
      // While the card is charged, no other call changes the cart.
      await ctx.step("charge", () => {
        charges.push(`${ctx.key}: ${cents}`);
        return "paid";
      });
      ctx.clearState();
      return cents;
    },
    total: shared(async (ctx) => ctx.state.cents),
  },
);

const checkout = workflow(
  "checkout",
  { input: z.object({ customer: z.string() }), output: z.number(), agents: [cart] },
  async (ctx, { customer }) => {
    await ctx.waitForSignal("confirmed");
    return ctx.object(cart, customer).pay();
  },
);

const worker = await openRuntime({ store });
for (const hosted of [cart, checkout]) worker.register(hosted);

const client = await openClient({ store });
const ada = client.object(cart, "ada");
const clicks = [300, 600].map((cents, index) => ada.add(cents, { id: `click-${index}` }));
await Promise.all(clicks);
assert.equal(await ada.add(600, { id: "click-1" }), await clicks[1]); // the click was counted before
assert.deepEqual(await ada.state(), { cents: 900 });
await assert.rejects(ada.add(-1), /the input of add\(\) of object cart/u);

// The client starts the workflow by its name, and needs none of its code.
const run = await client.start("checkout", { customer: "ada" }, { runId: "run_checkout-ada" });
await run.signal("confirmed", null, { id: "email-1" });
const { status, output } = await run.result();
console.log(status, output, charges);
assert.deepEqual([status, output, charges], ["completed", 900, ["ada: 900"]]);
assert.equal(await ada.total(), 0);

await client.object(cart, "bob").add(50);
assert.deepEqual((await client.objectStates("cart")).states, [{ key: "bob", state: { cents: 50 } }]);
await client.close();
await worker.close();
rmSync(folder, { recursive: true, force: true });

/** Type tests, checked by the compiler and never run. Each `@ts-expect-error` precedes a line that must not compile. */
import { z } from "zod";
import {
  handler,
  object,
  query,
  shared,
  update,
  workflow,
  type Workflow,
} from "../../src/entries/workflow.ts";
import type { Client, HostedAgent, JsonValue, Runtime } from "../../src/kernel/index.ts";

declare const runtime: Runtime;
declare const client: Client;
declare const agent: HostedAgent;

interface Receipt {
  readonly id: string;
  readonly lines?: readonly { readonly cents: number }[];
}
declare const receipt: Receipt;

const fees = workflow(
  "fees",
  { input: z.object({ cents: z.number().default(0) }), output: z.object({ fee: z.number() }) },
  async () => ({ fee: 1 }),
);

const order = workflow(
  "order",
  { input: z.object({ cents: z.coerce.number().default(0) }), output: z.object({ receipt: z.string() }) },
  async (ctx, input) => {
    input.cents satisfies number;
    const stored = await ctx.step("charge", () => receipt);
    stored satisfies Receipt;
    (await ctx.agent(agent, "?")) satisfies string;
    (await ctx.agent(agent, "?", { output: z.object({ fair: z.boolean() }) })).fair satisfies boolean;
    const { left, right } = await ctx.parallel({
      left: (branch) => branch.step("left", async () => 1),
      right: async () => "right" as const,
    });
    left satisfies number;
    right satisfies "right";
    await ctx.compensate("refund", async ({ idempotencyKey, reason, status, ctx: inside }) => {
      idempotencyKey satisfies string;
      reason satisfies string;
      status satisfies "failed" | "cancelled" | "deadline_exceeded";
      await inside.agent(agent, "?");
    });
    ctx.patched("vat-2027") satisfies boolean;
    if (input.cents > 5) return ctx.continueAsNew({ cents: 5 });
    // @ts-expect-error: the input has no member `cent`
    if (input.cents > 6) return ctx.continueAsNew({ cent: 5 });
    // @ts-expect-error: the option is timeoutMs
    await ctx.compensate("refund", () => undefined, { timeout: 5 });
    (await ctx.uncancellable((branch) => branch.step("left", () => 1))) satisfies number;
    // @ts-expect-error: a function is not JSON
    await ctx.uncancellable(async () => ({ run: () => 1 }));
    const other = await ctx.start(fees, { cents: 5 }, { id: "fees-1", onParentEnd: "abandon" });
    (await other.result()) satisfies { fee: number };
    (await ctx.call(fees, {})).fee satisfies number;
    (await ctx.send(fees, {}, { delayMs: 60_000 })) satisfies string;
    const selected = await ctx.any({
      other,
      late: async (branch) => branch.step("late", () => ({ fee: 1 })),
    });
    selected.value.fee satisfies number;
    const joined = await ctx.parallel({ other, one: async () => 1 });
    joined.other.fee satisfies number;
    joined.one satisfies number;
    const mapped = await ctx.map([1, 2], async (item, branch) => branch.step("each", () => item * 2));
    for (const item of mapped) if (item.status === "fulfilled") item.value satisfies number;
    // @ts-expect-error: the input of `fees` has no member `cent`
    await ctx.start(fees, { cent: 5 });
    // @ts-expect-error: an agent is no workflow
    await ctx.start(agent, {});
    // @ts-expect-error: a Date is not JSON
    await ctx.map([1], async () => new Date());
    // @ts-expect-error: a started run is cancelled or abandoned
    await ctx.start(fees, {}, { onParentEnd: "terminate" });
    // @ts-expect-error: a Date is not JSON
    await ctx.step("late", () => ({ at: new Date() }));
    // @ts-expect-error: a function is not JSON
    await ctx.step("code", async () => ({ run: () => 1 }));
    return { receipt: stored.id };
  },
);

export async function started(): Promise<void> {
  const run = await runtime.start(order, {});
  const result = await run.result();
  if (result.status === "completed") result.output.receipt satisfies string;
  else result.output satisfies JsonValue;
  (await order.run({ cents: 5 })).receipt satisfies string;
  // @ts-expect-error: the input has no member `cent`
  await runtime.start(order, { cent: 5 });
  // @ts-expect-error: an agent is no workflow
  await runtime.start(agent, {});
  // @ts-expect-error: a workflow has no session
  await runtime.sessions.path((await runtime.start(order, {})).sessionId);
  // @ts-expect-error: a workflow has no session
  await runtime.start(order, {}, { sessionId: "a" });
  // A workflow is hosted, scheduled and called like an agent.
  runtime.register(order);
  order satisfies HostedAgent;
}

const changeAddress = update("changeAddress", {
  input: z.object({ street: z.string() }),
  output: z.object({ moved: z.boolean() }),
});
const progress = query("progress", z.object({ done: z.number() }));

/** Messages have the types of their schemas on both sides. */
export const messages = workflow("messages", async (ctx) => {
  ctx.publish(progress, { done: 1 });
  ctx.publish("free", { at: 5 });
  // @ts-expect-error: a Date is not JSON
  ctx.publish("free", { at: new Date() });
  const handled = await ctx.handleUpdate(changeAddress, async ({ street }) => ({ moved: street !== "" }));
  if (handled?.status === "completed") handled.reply.moved satisfies boolean;
  const run = await runtime.start(order, {});
  (await run.update(changeAddress, { street: "Main St" })).moved satisfies boolean;
  (await run.update("changeAddress", null)) satisfies JsonValue;
  (await run.read(progress))?.done satisfies number | undefined;
  await ctx.sendSignal(run, "paid");
});

/** The output without a schema is what the function returns. */
export const plain = workflow("plain", async (ctx) => ({ id: await ctx.uuid() })) satisfies Workflow<
  JsonValue,
  { id: string }
>;

// @ts-expect-error: the output must match the schema
workflow("wrong", { output: z.object({ receipt: z.string() }) }, async () => ({ receipt: 5 }));
// @ts-expect-error: a bigint is not JSON
workflow("big", async () => ({ total: 5n }));

export const limited = workflow(
  "limited",
  {
    input: z.object({ shop: z.string() }),
    concurrency: { key: ({ input, tenantId }) => (tenantId === null ? null : input.shop), limit: 1 },
    // @ts-expect-error: the input has no member `shopId`
    rate: { key: ({ input }) => input.shopId, limit: 1, perMs: 1 },
  },
  async () => null,
);
// @ts-expect-error: a rate has a span
export const spanless = workflow("spanless", { rate: { limit: 1 } }, async () => null);

const counter = object(
  "counter",
  { state: z.object({ count: z.number() }).default({ count: 0 }) },
  {
    add: async (ctx, by: number) => {
      ctx.state.count satisfies number;
      ctx.key satisfies string;
      ctx.setState({ count: ctx.state.count + by });
      // @ts-expect-error: the state has no member `counts`
      ctx.setState({ counts: 1 });
      return { count: ctx.state.count };
    },
    whole: handler({ input: z.number().default(1), output: z.string() }, async (ctx, by) => {
      by satisfies number;
      return String(ctx.state.count);
    }),
    // @ts-expect-error: the output is a text
    bad: handler({ output: z.string() }, async () => 1),
    get: shared(async (ctx) => {
      // @ts-expect-error: a shared handler may not write
      ctx.setState({ count: 1 });
      return ctx.state.count;
    }),
  },
);
const visits = runtime.object(counter, "visits");
(await visits.add(1, { id: "a" })).count satisfies number;
(await visits.whole()) satisfies string;
(await visits.get()) satisfies number;
(await visits.state()).count satisfies number;
(await visits.send.add(1)).runId satisfies string;
// @ts-expect-error: the input is a number
await visits.add("1");
// @ts-expect-error: the input is missing
await visits.add();
// @ts-expect-error: the object has no such handler
await visits.subtract(1);
workflow("calls counter", async (ctx) => {
  (await ctx.object(counter, "visits").add(1)).count satisfies number;
  const call = await ctx.object(counter, "visits").start.get();
  (await call.result()) satisfies number;
  (await ctx.object(counter, "visits").send.add(1, { delayMs: 5 })) satisfies string;
  // @ts-expect-error: the input is a number
  await ctx.object(counter, "visits").send.add("1");
});

workflow(
  "load",
  { input: z.object({ id: z.string() }), batch: { key: ({ input }) => input.id, size: 10, ms: 1_000 } },
  async (ctx, inputs) => {
    inputs satisfies readonly { readonly id: string }[];
    // @ts-expect-error: a batch has no single input to continue with
    await ctx.continueAsNew({ id: "a" });
    return inputs.length;
  },
);
workflow(
  "index",
  { input: z.string(), debounce: { key: ({ input }) => input, ms: 1_000, maxMs: 5_000 } },
  async (_ctx, input) => input satisfies string,
);

void ((await client.start(order, { cents: 5 })).result() satisfies Promise<unknown>);
// @ts-expect-error -- a start with the workflow has the type of its input
void client.start(fees, { cents: "5" });
(await client.start("order", { cents: "5" }, { version: "2" })).runId satisfies string;
// @ts-expect-error -- a context is not stored
void client.start("order", null, { context: {} });
const [first] = await client.startMany(fees, [{ input: { cents: 5 }, runId: "run_a" }]);
if (first?.status === "started") {
  const ended = await first.run.result();
  if (ended.status === "completed") ended.output.fee satisfies number;
}
// @ts-expect-error -- the input of an item has the type of the workflow's
void client.startMany(fees, [{ input: { cents: "5" } }]);

// @ts-expect-error: what a handler returns is JSON
object("dated", { at: async () => new Date() });
// @ts-expect-error: what a handler returns is JSON, also in an object with a state
object("timed", { state: z.number().default(0) }, { when: async (ctx) => ({ at: new Date(ctx.state) }) });
// @ts-expect-error: a stored output is JSON
workflow("stored", { output: z.object({ at: z.date() }) }, async () => ({ at: new Date() }));
// @ts-expect-error: what a handler with a schema returns is JSON
handler({ output: z.object({ at: z.date() }) }, async () => ({ at: new Date() }));

/** A part of an output whose type is unknown has the type of any JSON. */
export const loose = workflow(
  "loose",
  { output: z.object({ data: z.unknown(), rest: z.record(z.string(), z.unknown()) }) },
  async () => ({ data: 1, rest: {} }),
);
/** The output type of a workflow with a transform is what the transform returns. */
export const measured = workflow(
  "measured",
  { output: z.string().transform((text) => text.length) },
  async () => "text",
) satisfies Workflow<JsonValue, number>;
const aDay = z.string().transform((text) => new Date(text));
workflow(
  "parsed",
  // @ts-expect-error: what the transform of `at` returns is not JSON
  { output: z.object({ at: aDay }) },
  async () => ({ at: "2026-01-01" }),
);

/** A step that returns nothing has the value `null`. */
export const empty = workflow("empty", async (ctx) => {
  (await ctx.step("nothing", () => {})) satisfies null;
  (await ctx.step("perhaps", (): number | undefined => 1)) satisfies number | null;
  return null;
});

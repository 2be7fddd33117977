import { formatRunId } from "../../../src/kernel/index.ts";
import { workflow } from "../../../src/entries/workflow.ts";
import { workload } from "../workload.ts";

interface World {
  /** What was charged, by the idempotency key of the charge. */
  readonly charged: Map<string, number>;
  readonly shipped: Map<string, string>;
}

interface Order {
  readonly id: string;
  readonly cents: number;
}

/** Orders that are charged and shipped by services which know idempotency keys, with a delay between them. */
export const orders = workload<World>(
  "orders",
  (seed, steps = stepsOf(seed)) => {
    const wanted = Array.from({ length: steps }, (_, index) => ({
      id: `order-${index}`,
      cents: 100 + index,
    }));
    return {
      workers: 1 + (seed % 3),
      world: () => ({ charged: new Map(), shipped: new Map() }),
      runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 3_000 },
      agents: ({ call, world }) => [
        workflow("order", async (ctx, input) => {
          const { id, cents } = input as unknown as Order;
          await ctx.step("charge", ({ idempotencyKey: key }) =>
            call("charge", () => void world.charged.set(key, cents), { key }),
          );
          await ctx.sleep("2 seconds");
          await ctx.step("ship", ({ idempotencyKey: key }) =>
            call("ship", () => void world.shipped.set(key, id), { key }),
          );
          return id;
        }),
      ],
      load: async ({ runtime, sleep }) => {
        for (const order of wanted) {
          await runtime.start("order", { ...order }, { runId: formatRunId(order.id) });
          await sleep(400);
        }
      },
      check: ({ runs, world }) => {
        const wrong: string[] = [];
        const money = [...world.charged.values()].toSorted((one, other) => one - other).join(" ");
        const expected = wanted.map(({ cents }) => cents).join(" ");
        if (money !== expected) wrong.push(`charged ${money || "nothing"}, and not ${expected}`);
        const goods = [...world.shipped.values()].toSorted().join(" ");
        const ordered = wanted.map(({ id }) => id).join(" ");
        if (goods !== ordered) wrong.push(`shipped ${goods || "nothing"}, and not ${ordered}`);
        for (const { run } of runs)
          if (run.status !== "completed") wrong.push(`${run.runId} is ${run.status}`);
        return wrong;
      },
    };
  },
  stepsOf,
);

function stepsOf(seed: number): number {
  return 1 + (seed % 3);
}

import { Agent, tool } from "../../../src/entries/index.ts";
import { formatRunId, type Event } from "../../../src/kernel/index.ts";
import { z } from "zod";
import { hasErrors, workload } from "../workload.ts";

interface World {
  /** Number of bookings by idempotency key. */
  readonly booked: Map<string, number>;
  /** What the provider has billed, in tokens. */
  billed: number;
}

/** What each call of the model costs. */
const inputTokens = 40;
const outputTokens = 10;
/** Number of tool calls that the model asks for. */
const rounds = 3;

/**
 * Agents with a model, tools and a token budget. The test knows what the provider has billed. This amount never exceeds
 * the cap, and equals what the run has recorded as spent plus what it has recorded as unreported.
 */
export const agents = workload<World>("agents", (seed) => {
  const maxTokens = seed % 3 === 0 ? 400 : 20_000;
  const runIds = [formatRunId("one"), formatRunId("two")];
  return {
    world: () => ({ booked: new Map(), billed: 0 }),
    runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000, unknownPrice: "ignore" },
    agents: ({ call, model, world }) => {
      const book = tool({
        name: "book",
        description: "Books a seat.",
        inputSchema: z.object({ round: z.number() }),
        execute: (_, { idempotencyKey }) =>
          call(
            "book",
            () => {
              world.booked.set(idempotencyKey, (world.booked.get(idempotencyKey) ?? 0) + 1);
              return "booked";
            },
            { key: idempotencyKey },
          ),
      });
      const clerk = model(({ messages }) => {
        world.billed += inputTokens + outputTokens;
        const results = messages.filter(({ role }) => role === "tool").length;
        const usage = { inputTokens, outputTokens };
        return results >= rounds
          ? { text: `Done after ${results}.`, usage }
          : { toolCalls: [{ name: "book", input: { round: results } }], usage };
      });
      return [
        new Agent({
          name: "clerk",
          model: { ...clerk, countTokens: async () => inputTokens },
          tools: [book],
          budget: { maxTokens },
        }),
      ];
    },
    load: async ({ submit, sleep }) => {
      for (const runId of runIds) {
        await submit("clerk", "Book three seats.", { runId });
        await sleep(200);
      }
    },
    check: ({ runs, world, deaths }) => {
      const wrong: string[] = [];
      let recorded = 0;
      for (const { run, events } of runs) {
        const { usage, unreported } = run;
        const spent = usage.inputTokens + usage.outputTokens + unreported.tokens;
        recorded += spent;
        if (spent > maxTokens) wrong.push(`${run.runId} has spent ${spent} of ${maxTokens} tokens`);
        if (run.status !== "completed" && run.status !== "budget_exhausted")
          wrong.push(`${run.runId} is ${run.status}: ${failureOf(events)}`);
        wrong.push(...orderOf(events));
      }
      if (world.billed > recorded)
        wrong.push(`the provider has billed ${world.billed} tokens, and the runs have recorded ${recorded}`);
      const isWhole = runs.every(({ run }) => run.status === "completed") && !hasErrors(runs);
      if (isWhole && world.booked.size !== rounds * runIds.length)
        wrong.push(`${world.booked.size} different bookings, and not ${rounds * runIds.length}`);
      if (deaths === 0 && [...world.booked.values()].some((count) => count > 4))
        wrong.push("a booking was repeated although no worker died");
      return wrong;
    },
  };
});

/** Each call of a tool starts once and ends once. */
function orderOf(events: readonly Event[]): readonly string[] {
  const wrong: string[] = [];
  const open = new Set<string>();
  for (const event of events) {
    if (event.type === "tool_execution_start") {
      if (open.has(event.data.callId)) wrong.push(`call ${event.data.callId} of ${event.runId} starts twice`);
      open.add(event.data.callId);
    }
    if (event.type === "tool_execution_end" && !open.delete(event.data.callId))
      wrong.push(`call ${event.data.callId} of ${event.runId} ends without a start, or twice`);
  }
  return wrong;
}

function failureOf(events: readonly Event[]): string {
  const end = events.findLast(({ type }) => type === "task_end" || type === "agent_error");
  return JSON.stringify(end?.data).slice(0, 300);
}

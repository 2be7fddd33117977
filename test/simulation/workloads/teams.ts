import { Agent, tool } from "../../../src/entries/index.ts";
import {
  formatAgentId,
  formatRunId,
  Priority,
  rootTaskId,
  type HostedAgent,
  type TaskHandle,
} from "../../../src/kernel/index.ts";
import type { OutsideCall, SeenCommit } from "../../../src/entries/testing.ts";
import { z } from "zod";
import { hasErrors, workload } from "../workload.ts";

interface World {
  /** The idempotency keys of each booked place. */
  readonly booked: Map<string, Set<string>>;
  /** What the provider has billed, in tokens. */
  billed: number;
  /** The cap of the run with its top-ups, in tokens. */
  cap: number;
  calls: number;
  readonly wrong: string[];
}

/** What each model call costs. */
const inputTokens = 40;
const outputTokens = 10;
/** Time that a call needs at most to arrive at the outside, in milliseconds. */
const onItsWayMs = 10;
const priorities = [Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL];

/**
 * A lead that spawns clerks of different priorities into few seats, with preemption and recall, under a cap of tokens that the load tops
 * up. The model of the workload counts seats, tokens and reservations at each commit and each call.
 */
export const teams = workload<World>(
  "teams",
  (seed, steps = stepsOf(seed)) => {
    const runId = formatRunId("team");
    const isCancelled = seed % 5 === 0;
    const clerks = Array.from({ length: steps }, (_, index) => ({
      name: `place-${index}`,
      priority: priorities[Math.floor(seed / (index + 2)) % priorities.length] as Priority,
      afterMs: (seed * (index + 3)) % 900,
      rounds: 1 + ((seed + index) % 3),
    }));
    const maxAgents = 2 + (seed % 3);
    const firstCap = seed % 2 === 0 ? 1_000_000 : 700;
    const seats = new Seats(maxAgents);
    let reserved = 0;
    let endedAtMs = Infinity;
    return {
      watch: (seen) => {
        for (const command of seen.commit.ledger ?? []) if (command.type === "reserve") reserved++;
        for (const { type } of seen.commit.events ?? [])
          if (type === "run_end") endedAtMs = seen.atMs;
          else if (type === "budget_top_up") endedAtMs = Infinity;
        return seats.see(seen);
      },
      world: () => ({ booked: new Map(), billed: 0, cap: firstCap, calls: 0, wrong: [] }),
      runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000, unknownPrice: "ignore" },
      agents: ({ call, model, sleep, world }) => {
        const book = tool({
          name: "book",
          description: "Books a place.",
          inputSchema: z.object({ place: z.string() }),
          execute: ({ place }, { idempotencyKey: key }) =>
            call(
              "book",
              () => void world.booked.set(place, (world.booked.get(place) ?? new Set()).add(key)),
              {
                key,
              },
            ),
        });
        const hosted = clerks.map(({ name, rounds }): HostedAgent => {
          const played = model(({ messages }) => {
            world.billed += inputTokens + outputTokens;
            world.calls++;
            // B3: a call is made after its reservation is durable.
            if (world.calls > reserved)
              world.wrong.push(`call ${world.calls} has no reservation, of ${reserved}`);
            // B1: what is billed never exceeds the cap.
            if (world.billed > world.cap) world.wrong.push(`billed ${world.billed} of ${world.cap} tokens`);
            const results = messages.filter(({ role }) => role === "tool").length;
            const usage = { inputTokens, outputTokens };
            return results >= rounds
              ? { text: "Done.", usage }
              : { toolCalls: [{ name: "book", input: { place: `${name}/${results}` } }], usage };
          });
          return new Agent({
            name,
            model: { ...played, countTokens: async () => inputTokens },
            tools: [book],
          });
        });
        const lead: HostedAgent = {
          id: formatAgentId({ name: "lead" }),
          subAgents: hosted,
          run: async (ctx) => {
            const handles: TaskHandle[] = [];
            for (const [index, { priority, afterMs }] of clerks.entries()) {
              const clerk = hosted[index] as HostedAgent;
              const spawned = await ctx.spawn(clerk.id, "Book.", { priority, onFull: "wait" });
              if (spawned.kind === "spawned") handles.push(spawned.handle);
              await ctx.step("wait", async () => {
                await sleep(afterMs);
                return null;
              });
            }
            const ends = await ctx.joinAll(handles);
            return ends.map(({ status }) => status);
          },
        };
        return [lead];
      },
      load: async ({ submit, sleep, world }) => {
        const run = await submit("lead", null, {
          runId,
          spawnBudget: { maxAgents, allowPreempt: true },
          budget: { maxTokens: firstCap },
        });
        if (isCancelled) {
          await sleep(300 + (seed % 1_000));
          await run.cancel("the load cancels it");
        }
        for (let ends = 0; ends < 20; ends++) {
          const { status } = await run.result();
          if (status !== "budget_exhausted") break;
          world.cap += 500;
          const { endedAt } = await run.summary();
          await run.topUp({ maxTokens: 500 });
          while ((await run.summary()).endedAt === endedAt) await sleep(100);
        }
      },
      check: ({ runs, world, calls }) => {
        const wrong = [...world.wrong];
        const [found] = runs;
        if (found === undefined) return ["there is no run"];
        const { usage, unreported, status } = found.run;
        const spent = usage.inputTokens + usage.outputTokens + unreported.tokens;
        if (spent > world.cap) wrong.push(`spent ${spent} of ${world.cap} tokens`);
        if (world.billed > spent) wrong.push(`billed ${world.billed} tokens, and recorded ${spent}`);
        if (!isCancelled && status !== "completed") wrong.push(`the run is ${status}`);
        wrong.push(...seats.strangers(calls));
        for (const call of calls)
          if (call.name === "model" && call.atMs > endedAtMs + onItsWayMs)
            wrong.push(
              `${call.process} calls the model ${Math.round(call.atMs - endedAtMs)} ms after the end of the run`,
            );
        if (status !== "completed") return wrong;
        const last = found.events.findLast(({ type }) => type === "task_end");
        const isWhole = !hasErrors(runs) && !JSON.stringify(last).includes('"failed"');
        for (const { name, rounds } of clerks)
          for (let round = 0; round < rounds; round++)
            if (isWhole && world.booked.get(`${name}/${round}`)?.size !== 1)
              wrong.push(`${name}/${round} has ${world.booked.get(`${name}/${round}`)?.size ?? 0} bookings`);
        return wrong;
      },
    };
  },
  stepsOf,
);

function stepsOf(seed: number): number {
  return 2 + (seed % 4);
}

/** H1: who holds a seat, from the events of the log alone. */
class Seats {
  readonly #maxAgents: number;
  readonly #held = new Set<string>([rootTaskId]);
  /** When each task lost its seat. */
  readonly #lostAt = new Map<string, { readonly fromMs: number; toMs: number }[]>();

  constructor(maxAgents: number) {
    this.#maxAgents = maxAgents;
  }

  see({ commit, atMs }: SeenCommit): readonly string[] {
    for (const event of commit.events ?? []) {
      if (event.type === "spawn_start") this.#take(event.data.childTaskId, atMs);
      else if (event.type === "seat_grant" || event.type === "seat_recall")
        this.#take(event.data.taskId, atMs);
      else if (event.type === "seat_pause") this.#lose(event.data.taskId, atMs);
      else if (event.type === "task_end") this.#lose(event.taskId, atMs);
    }
    // A commit is one moment: a seat may pass to a new task in it.
    if (this.#held.size <= this.#maxAgents) return [];
    return [`H1: ${this.#held.size} of ${this.#maxAgents} seats are taken after commit ${commit.number}`];
  }

  #take(taskId: string, atMs: number): void {
    this.#held.add(taskId);
    const last = this.#lostAt.get(taskId)?.at(-1);
    if (last !== undefined) last.toMs = atMs;
  }

  #lose(taskId: string, atMs: number): void {
    if (!this.#held.delete(taskId)) return;
    const spans = this.#lostAt.get(taskId) ?? [];
    spans.push({ fromMs: atMs, toMs: Infinity });
    this.#lostAt.set(taskId, spans);
  }

  /** H2: says which calls of tools were made by tasks without a seat. */
  strangers(calls: readonly OutsideCall[]): readonly string[] {
    return calls.flatMap(({ key, atMs, process }) => {
      const taskId = key?.split("/")[1] ?? "";
      const spans = this.#lostAt.get(taskId) ?? [];
      const isWithout = spans.some(({ fromMs, toMs }) => atMs > fromMs + onItsWayMs && atMs < toMs);
      return isWithout ? [`H2: ${process} calls ${key} without a seat`] : [];
    });
  }
}

import { describe, expect, test } from "vitest";
import type { ExecutionBudget, JsonValue, RunHandle, RunResult } from "../../../../src/kernel/index.ts";
import { createRuntime } from "../../../../src/runtime/local-runtime.ts";
import { memoryStore, sha256, type RuntimeOptions } from "../../../../src/runtime/index.ts";
import { FakeClock } from "../../../../src/testing/index.ts";
import { price } from "../../../crash/workload.ts";
import { architectureCases } from "../../architecture-cases/index.ts";
import { InProcessServices } from "../../architecture-cases/in-process-services.ts";
import type { ArchitectureCase } from "../../architecture-cases/architecture-case.ts";

interface Ran {
  readonly result: RunResult<JsonValue>;
  readonly outside: InProcessServices;
  readonly tokens: number;
  readonly usd: number;
  /** Texts of model answers that also called tools, so that they were not final. */
  readonly unfinished: ReadonlySet<JsonValue>;
}

interface RanOptions {
  readonly budget?: Partial<ExecutionBudget>;
  readonly runtime?: RuntimeOptions;
  /** Called before each answer of a model or tool. */
  readonly hold?: (calls: number, run: () => Promise<RunHandle>, outside: InProcessServices) => Promise<void>;
  /** Called after the run has ended for the first time. */
  readonly afterwards?: (run: RunHandle) => Promise<void>;
}

async function ran(
  thinker: ArchitectureCase,
  { budget = {}, runtime: more, hold, afterwards }: RanOptions = {},
): Promise<Ran> {
  const unfinished = new Set<JsonValue>();
  const outside = new InProcessServices((asked) => {
    const said = thinker.reply(asked);
    if (said.calls !== undefined) unfinished.add(said.text ?? "");
    return said;
  });
  const submitted = Promise.withResolvers<RunHandle>();
  if (hold !== undefined) outside.hold = (calls) => hold(calls, () => submitted.promise, outside);
  const runtime = await createRuntime({ prices: { find: () => price }, ...more });
  const run = await runtime.submit(thinker.agent(outside), thinker.input, { budget });
  submitted.resolve(run);
  await run.result();
  await afterwards?.(run);
  const result = await run.result();
  await runtime.close();
  const billed = outside.calls.map((call) => call.billed);
  const tokens = billed.reduce((sum, each) => sum + each.tokens, 0);
  return { result, outside, tokens, usd: billed.reduce((sum, each) => sum + each.usd, 0), unfinished };
}

/** Sorts outputs by completeness: empty, then intermediate, then final. Stable for equal outputs. */
function byWorth(outputs: readonly JsonValue[], { unfinished }: Ran): readonly JsonValue[] {
  const worth = (output: JsonValue): number =>
    output === "" || output === null ? 0 : unfinished.has(output) ? 1 : 2;
  return outputs.toSorted((one, other) => worth(one) - worth(other));
}

describe.each(Object.entries(architectureCases))(
  "budgets and stops of the architecture %s",
  (_name, thinker) => {
    test("a run with an unlimited budget completes", async () => {
      const { result } = await ran(thinker);
      expect(result).toMatchObject({ status: "completed", output: thinker.output, error: null });
    });

    test("B1, B5: a run without turns stops as budget_exhausted with its partial output and makes no further model call", async () => {
      const { result: calm } = await ran(thinker);
      for (let maxTurns = 0; maxTurns < calm.turns; maxTurns++) {
        const { result, outside } = await ran(thinker, { budget: { maxTurns } });
        expect(result).toMatchObject({
          status: "budget_exhausted",
          error: { code: "budget_exhausted", details: { dimension: "turns", limit: maxTurns } },
        });
        expect(result.turns).toBeLessThanOrEqual(maxTurns);
        expect(outside.modelCalls).toBeLessThanOrEqual(maxTurns);
        const mustShow = maxTurns === calm.turns - 1 && thinker.hasNoPartial !== true;
        expect(mustShow ? result.output : "whatever there is").toMatch(/./);
      }
    });

    test("B5: a later stop never returns a less complete output", async () => {
      const calm = await ran(thinker);
      const kept: JsonValue[] = [];
      for (let maxTurns = 0; maxTurns < calm.result.turns; maxTurns++)
        kept.push((await ran(thinker, { budget: { maxTurns } })).result.output);
      expect(kept).toEqual(byWorth(kept, calm));
    });

    test("J5: a run continues after topUp() and repeats no call", async () => {
      const { result: calm, outside } = await ran(thinker);
      const { turns } = calm;
      const afterwards = (run: RunHandle): Promise<void> => run.topUp({ maxTurns: 1 });
      const { result, outside: again } = await ran(thinker, { budget: { maxTurns: turns - 1 }, afterwards });
      expect(result).toMatchObject({ status: "completed", output: thinker.output, turns });
      expect(again.calls).toHaveLength(outside.calls.length);
    });

    test.for(["maxTokens", "maxCostUsd"] as const)(
      "B1, B5: a run that exhausts %s stops as budget_exhausted and never spends more than the cap",
      async (dimension) => {
        const calm = await ran(thinker);
        const all = dimension === "maxTokens" ? calm.tokens : calm.usd;
        for (const part of [0, 0.3, 0.6, 0.95]) {
          const cap = dimension === "maxTokens" ? Math.floor(all * part) : all * part;
          const { result, tokens, usd } = await ran(thinker, { budget: { [dimension]: cap } });
          expect(result).toMatchObject({ status: "budget_exhausted", error: { code: "budget_exhausted" } });
          expect(dimension === "maxTokens" ? tokens : usd).toBeLessThanOrEqual(cap);
          expect(result.costUsd).toBeCloseTo(usd, 9);
        }
      },
    );

    test("B5, C2: a run past its deadline stops as deadline_exceeded and makes no further call", async () => {
      const clock = new FakeClock();
      const store = memoryStore({ hash: sha256 });
      const began = clock.now();
      const late: number[] = [];
      const { result } = await ran(thinker, {
        budget: { deadlineMs: 500 },
        runtime: { clock, store },
        hold: async () => {
          late.push(clock.now() - began);
          await clock.advance(1_000);
        },
      });
      expect(result.status).toBe("deadline_exceeded");
      expect(late.filter((at) => at > 500)).toEqual([]);
      expect(late).not.toHaveLength(0);
    });

    test("C1, C2: a run that is cancelled at any call ends as cancelled and makes no further call", async () => {
      const calm = await ran(thinker);
      const { calls } = calm.outside;
      const kept: JsonValue[] = [];
      for (let at = 1; at <= calls.length; at++) {
        let asked = 0;
        const { result, outside } = await ran(thinker, {
          hold: async (made, run, world) => {
            if (made !== at) return;
            const handle = await run();
            await handle.cancel("enough");
            for await (const { type } of handle.events({ types: ["run_cancel"] }))
              if (type === "run_cancel") break;
            asked = world.calls.length;
          },
        });
        expect({ at, calls: outside.calls.length }).toEqual({ at, calls: asked });
        // If the cancellation arrives while the last answer is being returned, the run may complete with it.
        const isAnswered = at === calls.length && result.output === thinker.output;
        expect({ at, status: result.status }).toEqual({
          at,
          status: isAnswered && result.status === "completed" ? "completed" : "cancelled",
        });
        kept.push(result.output);
      }
      expect(kept).toEqual(byWorth(kept, calm));
    });
  },
);

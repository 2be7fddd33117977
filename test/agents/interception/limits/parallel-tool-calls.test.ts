import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type AgentOptions } from "../../../../src/entries/index.ts";
import { scriptedModel, type ScriptedReply } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";

removeStoresAfterEach();

const asksFor = (count: number): ScriptedReply => ({
  toolCalls: Array.from({ length: count }, (_, index) => ({ name: "count", input: { index } })),
});

/** A tool whose calls end when the test says so. `started(n)` resolves when the tool was called `n` times. */
function heldTool(options: { readonly needsApproval?: boolean } = {}) {
  const executed: number[] = [];
  const ends = new Map<number, () => void>();
  let noted = Promise.withResolvers<void>();
  const count = tool({
    name: "count",
    description: "Counts",
    inputSchema: { type: "object", properties: { index: { type: "number" } }, required: ["index"] },
    ...options,
    execute: async ({ index }: { index: number }) => {
      const end = Promise.withResolvers<void>();
      executed.push(index);
      ends.set(index, end.resolve);
      noted.resolve();
      await end.promise;
      return `counted ${index}`;
    },
  });
  return {
    count,
    executed,
    end: (index: number) => ends.get(index)?.(),
    started: async (calls: number): Promise<readonly number[]> => {
      while (executed.length < calls) {
        await noted.promise;
        noted = Promise.withResolvers();
      }
      return executed;
    },
  };
}

function scout(options: Partial<AgentOptions>) {
  const model = scriptedModel([asksFor(5), "Done."]);
  return { model, agent: new Agent({ name: "scout", model, ...options }) };
}

/** The texts of the results that the model received, in their order. */
function resultsSeen({ calls }: ReturnType<typeof scriptedModel>): readonly unknown[] {
  const message = calls.at(-1)?.messages.at(-1);
  return message?.role === "tool" ? message.content.map(({ output }) => "text" in output && output.text) : [];
}

const inOrder = [0, 1, 2, 3, 4].map((index) => `counted ${index}`);

describe.each(twoStores)("maxParallelToolCalls on the %s store", (_name, prepare) => {
  test("the calls of a turn with maxParallelToolCalls start in order, at most as many at a time, and their results keep the order", async () => {
    const { count, started, end } = heldTool();
    const { agent, model } = scout({ tools: [count], maxParallelToolCalls: 2 });
    await using runtime = await openRuntime({ store: await (await prepare())(), unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Count.");
    expect(await started(2)).toEqual([0, 1]);
    end(1);
    expect(await started(3)).toEqual([0, 1, 2]);
    end(2);
    expect(await started(4)).toEqual([0, 1, 2, 3]);
    end(0);
    expect(await started(5)).toEqual([0, 1, 2, 3, 4]);
    end(4);
    end(3);
    expect((await run.result()).status).toBe("completed");
    expect(resultsSeen(model)).toEqual(inOrder);
  });

  test("all calls of a turn start at once if maxParallelToolCalls is absent", async () => {
    const { count, started, end } = heldTool();
    const { agent, model } = scout({ tools: [count] });
    await using runtime = await openRuntime({ store: await (await prepare())(), unknownPrice: "ignore" });
    const run = await runtime.submit(agent, "Count.");
    expect(await started(5)).toEqual([0, 1, 2, 3, 4]);
    for (const index of [4, 3, 2, 1, 0]) end(index);
    await run.result();
    expect(resultsSeen(model)).toEqual(inOrder);
  });

  test("J1: a restart repeats no call that has a result, and maxParallelToolCalls limits the calls that are left", async () => {
    const open = await prepare();
    const first = heldTool();
    const before = await openRuntime({ store: await open(), unknownPrice: "ignore", closeGraceMs: 0 });
    const { agent } = scout({ tools: [first.count], maxParallelToolCalls: 2 });
    const run = await before.submit(agent, "Count.");
    await first.started(2);
    const results = run.events({ types: ["tool_execution_end"] })[Symbol.asyncIterator]();
    first.end(0);
    await results.next();
    expect(await first.started(3)).toEqual([0, 1, 2]);
    await before.close();
    const second = heldTool();
    const model = scriptedModel(["Done."]);
    const resumed = new Agent({ name: "scout", model, tools: [second.count], maxParallelToolCalls: 2 });
    await using after = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    after.register(resumed);
    // Both calls were in flight when the first process ended, so they start at the same time.
    expect((await second.started(2)).toSorted((a, b) => a - b)).toEqual([1, 2]);
    second.end(2);
    expect((await second.started(3)).slice(2)).toEqual([3]);
    second.end(1);
    second.end(3);
    await second.started(4);
    second.end(4);
    expect((await (await after.find(run.runId))?.result())?.status).toBe("completed");
    expect(second.executed.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
    expect(resultsSeen(model)).toEqual(inOrder);
  });

  test("a call that waits for a person keeps its place in maxParallelToolCalls, also after a restart", async () => {
    const open = await prepare();
    const options = { unknownPrice: "ignore", suspendAfterMs: 1 } as const;
    const { count, executed, end, started } = heldTool({ needsApproval: true });
    const before = await openRuntime({ store: await open(), ...options });
    const { agent } = scout({ tools: [count], maxParallelToolCalls: 1 });
    const run = await before.submit(agent, "Count.");
    expect((await run.untilPersonIsNeeded()).map(({ input }) => input)).toEqual([{ index: 0 }]);
    await before.close();
    await using after = await openRuntime({ store: await open(), ...options });
    const model = scriptedModel(["Done."]);
    after.register(new Agent({ name: "scout", model, tools: [count], maxParallelToolCalls: 1 }));
    const found = await after.find(run.runId);
    if (found === undefined) throw new Error("the run is gone");
    for (let index = 0; index < 5; index++) {
      const pending = await found.untilPersonIsNeeded();
      expect(pending.map(({ input }) => input)).toEqual([{ index }]);
      for (const { approvalId } of pending) await found.approve(approvalId, { decision: "approved" });
      expect(await started(index + 1)).toHaveLength(index + 1);
      end(index);
    }
    expect((await found.result()).status).toBe("completed");
    expect(executed).toEqual([0, 1, 2, 3, 4]);
    expect(resultsSeen(model)).toEqual(inOrder);
  });
});

describe("maxParallelToolCalls", () => {
  test.each([0, -1, 1.5, Number.NaN, Infinity])(
    "maxParallelToolCalls %s is refused when the agent is created",
    (maxParallelToolCalls) => {
      expect(() => new Agent({ name: "scout", maxParallelToolCalls })).toThrow(
        `invalid maxParallelToolCalls ${maxParallelToolCalls} of agent scout: expected an integer from 1`,
      );
    },
  );
});

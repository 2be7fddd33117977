import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool } from "../../../../src/entries/index.ts";
import { toolCallsOf, type Event, type Model, type Store } from "../../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedReply } from "../../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../../runtime/two-stores.ts";
import { casesOf } from "../../../effort.ts";

removeStoresAfterEach();

const asksFor = (count: number): ScriptedReply => ({
  toolCalls: Array.from({ length: count }, (_, index) => ({ name: "count", input: { index } })),
});

function counter(concurrency: "parallel" | "sequential" = "parallel") {
  const executed: number[] = [];
  const count = tool({
    name: "count",
    description: "Counts",
    inputSchema: { type: "object", properties: { index: { type: "number" } }, required: ["index"] },
    concurrency,
    execute: async ({ index }: { index: number }) => {
      executed.push(index);
      return `counted ${index}`;
    },
  });
  return { executed, count };
}

const refused = (limit: number): string =>
  `not executed: only the first ${limit} tool calls of a turn are executed; make the call again in the next turn`;

/** Number of calls in one reply. */
const flood = casesOf(10_000, 2_000);

describe.each(twoStores)("maxToolCallsPerTurn on the %s store", (_name, prepare) => {
  async function answered(store: Store, agent: Agent): Promise<{ events: Event[]; status: string }> {
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const handle = await runtime.submit(agent, "Count.");
    const { status } = await handle.result();
    const events: Event[] = [];
    for await (const event of handle.events()) if ("seq" in event) events.push(event);
    await runtime.close();
    return { events, status };
  }

  test(`a reply with ${flood} tool calls executes the first 128, and each further call has an error result at its own position`, async () => {
    const open = await prepare();
    const { count, executed } = counter();
    const model = scriptedModel([asksFor(flood), "Done."]);
    const { events, status } = await answered(
      await open(),
      new Agent({ name: "scout", model, tools: [count] }),
    );
    expect(status).toBe("completed");
    expect(executed).toEqual(Array.from({ length: 128 }, (_, index) => index));
    const message = model.calls[1]?.messages.at(-1);
    const results = message?.role === "tool" ? message.content : [];
    expect(results.length).toBe(flood);
    const calls = toolCallsOf(model.calls[1]?.messages.at(-2) as never);
    for (const [index, result] of results.entries()) {
      const isExecuted = index < 128;
      expect(result).toMatchObject({
        callId: calls[index]?.callId,
        isError: !isExecuted,
        output: { text: isExecuted ? `counted ${index}` : refused(128) },
      });
    }
    expect(events.filter(({ type }) => type === "tool_execution_end").length).toBe(flood);
  });

  test("maxToolCallsPerTurn of an agent applies to sequential tools and starts anew with each model call", async () => {
    const open = await prepare();
    const { count, executed } = counter("sequential");
    const model = scriptedModel([asksFor(4), asksFor(1), asksFor(3), "Done."]);
    const agent = new Agent({ name: "scout", model, tools: [count], maxToolCallsPerTurn: 2 });
    expect((await answered(await open(), agent)).status).toBe("completed");
    expect(executed).toEqual([0, 1, 0, 0, 1]);
  });

  test("a run keeps its maxToolCallsPerTurn when another process resumes it with another limit", async () => {
    const open = await prepare();
    const asked = Promise.withResolvers<void>();
    const silent: Model = Object.assign(scriptedModel([]), {
      generate: () => {
        asked.resolve();
        return new Promise<never>(() => undefined);
      },
    });
    const { count, executed } = counter();
    const options = { name: "scout", tools: [count] };
    const first = await openRuntime({ store: await open(), unknownPrice: "ignore", closeGraceMs: 0 });
    const { runId } = await first.submit(
      new Agent({ ...options, model: silent, maxToolCallsPerTurn: 2 }),
      "Count.",
    );
    await asked.promise;
    await first.close();
    const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const model = scriptedModel([asksFor(4), "Done."]);
    second.register(new Agent({ ...options, model, maxToolCallsPerTurn: 3 }));
    const result = await (await second.find(runId))?.result();
    await second.close();
    expect(result?.status).toBe("completed");
    expect(executed).toEqual([0, 1]);
  });
});

describe("maxToolCallsPerTurn", () => {
  test.each([0, -1, 1.5, Number.NaN, Infinity])(
    "maxToolCallsPerTurn %s is refused when the agent is created",
    (maxToolCallsPerTurn) => {
      expect(() => new Agent({ name: "scout", maxToolCallsPerTurn })).toThrow(
        `invalid maxToolCallsPerTurn ${maxToolCallsPerTurn} of agent scout: expected an integer from 1`,
      );
    },
  );
});

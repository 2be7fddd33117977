import { describe, expect, it } from "vitest";
import { supervisor } from "../../../src/agents/architectures/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import {
  HistoryRetention,
  messageText,
  parseSessionId,
  type ChatMessage,
  type HistoryKey,
  type HistoryProvider,
  type RunId,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { runWorkload } from "../../runtime/simulated-crash.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const sessionId = parseSessionId("talk");

/** A table of messages, as an application may have one. It outlives the processes of a test. */
class Table {
  readonly rows: {
    readonly key: string;
    readonly runId: RunId | null;
    readonly messages: readonly ChatMessage[];
  }[] = [];
  readonly appends: RunId[] = [];
  /** Number of calls of `clearRun` that fail. */
  failures = 0;
  clears = 0;

  get texts(): readonly string[] {
    return this.rows.flatMap(({ messages }) => messages.map(messageText));
  }

  readonly provider: HistoryProvider = {
    read: async (at) => this.#of(at).flatMap(({ messages }) => messages),
    append: async (at, runId, messages) => {
      this.appends.push(runId);
      const row = { key: keyOf(at), runId, messages };
      const place = this.rows.findIndex((each) => each.key === row.key && each.runId === runId);
      if (place === -1) this.rows.push(row);
      else this.rows[place] = row;
    },
    count: async (at) => this.#of(at).flatMap(({ messages }) => messages).length,
    clearRun: async (runId) => {
      this.clears++;
      if (this.failures-- > 0) throw new Error("the table is locked");
      this.#delete((row) => row.runId === runId);
    },
    clear: async (at) => this.#delete((row) => row.key === keyOf(at)),
  };

  #of(at: HistoryKey) {
    return this.rows.filter(({ key }) => key === keyOf(at));
  }

  #delete(isGone: (row: (typeof this.rows)[number]) => boolean): void {
    for (let index = this.rows.length - 1; index >= 0; index--)
      if (isGone(this.rows[index] as (typeof this.rows)[number])) this.rows.splice(index, 1);
  }
}

function keyOf({ agentId, sessionId: session }: HistoryKey): string {
  return `${agentId} ${session}`;
}

function clerk(script: readonly ScriptStep[], { provider }: Table) {
  const model = scriptedModel(script);
  return { model, agent: new Agent({ name: "clerk", model, history: provider }) };
}

describe.each(twoStores)("a history provider with a %s store", (_name, prepare) => {
  it("a run with the retention NONE reads its history provider and never appends to it", async () => {
    const table = new Table();
    const runtime = await createRuntime({ store: await (await prepare())(), pollMs: 10 });
    const { agent, model } = clerk(["one", "two"], table);
    await (await runtime.submit(agent, "A", { sessionId })).result();
    const retention = HistoryRetention.NONE;
    await (await runtime.submit(agent, "B", { sessionId, retention })).result();
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["A", "one", "B"]);
    expect(table.texts).toEqual(["A", "one"]);
    expect([table.appends.length, table.clears]).toEqual([1, 0]);
    await runtime.close();
  });

  it("R14: a run with retention run appends to its history provider and is removed from it after its end, with any status", async () => {
    const table = new Table();
    const runtime = await createRuntime({ store: await (await prepare())(), pollMs: 10 });
    const { agent } = clerk(["one", "two"], table);
    await (await runtime.submit(agent, "A", { sessionId })).result();
    const retention = HistoryRetention.RUN;
    const run = await runtime.submit(agent, "B", { sessionId, retention });
    expect((await run.result()).output).toBe("two");
    await expect.poll(() => table.clears).toBe(1);
    expect(table.appends).toHaveLength(2);
    expect(table.texts).toEqual(["A", "one"]);
    const failing = await runtime.submit(agent, "C", { sessionId, retention });
    expect((await failing.result()).status).toBe("failed");
    await expect.poll(() => table.clears).toBe(2);
    await runtime.close();
  });

  it("R14: if clearRun() of a history provider failed before the process ended, the next owner calls it again once", async () => {
    const table = new Table();
    table.failures = 1;
    const open = await prepare();
    const errors: string[] = [];
    const onError = (error: Error): void => void errors.push(error.message);
    const first = await createRuntime({ store: await open(), pollMs: 10, keepEndedRunsMs: 0, onError });
    const run = await first.submit(clerk(["one"], table).agent, "A", {
      sessionId,
      retention: HistoryRetention.RUN,
    });
    expect((await run.result()).output).toBe("one");
    await expect.poll(() => errors).toEqual(["the table is locked"]);
    await first.close();
    expect(table.texts).toEqual(["A", "one"]);
    const second = await createRuntime({ store: await open(), pollMs: 10, keepEndedRunsMs: 0 });
    second.register(clerk([], table).agent);
    await expect.poll(() => table.texts).toEqual([]);
    await second.close();
    const third = await createRuntime({ store: await open(), pollMs: 10 });
    await (await third.submit(clerk(["two"], table).agent, "B")).result();
    expect(table.clears).toBe(2);
    await third.close();
  });
});

/** A supervisor that delegates twice to a worker that remembers, and then answers. */
function team(
  table: Table,
  { lead, worker }: { lead: readonly ScriptStep[]; worker: readonly ScriptStep[] },
) {
  const model = scriptedModel(worker);
  const reader = new Agent({ name: "reader", model, history: table.provider });
  const architecture = supervisor({ workers: { reader }, remember: true });
  return { model, agent: new Agent({ name: "lead", model: scriptedModel(lead), architecture }) };
}

const delegate = (task: string): ScriptStep => ({
  toolCalls: [{ name: "delegate", input: { worker: "reader", task } }],
});

describe.each(twoStores)("a child with remember and a history provider in a %s store", (_name, prepare) => {
  it("a child with a history provider sees what earlier tasks of its agent said, after a restart and in later runs too", async () => {
    const table = new Table();
    const open = await prepare();
    const first = await createRuntime({ store: await open(), pollMs: 10 });
    const before = team(table, { lead: [delegate("A"), delegate("B")], worker: ["one", "two"] });
    const { runId } = await first.submit(before.agent, "go", { sessionId, budget: { maxTurns: 4 } });
    expect((await (await first.find(runId))?.result())?.status).toBe("budget_exhausted");
    expect(before.model.calls[1]?.messages.map(messageText)).toEqual(["A", "one", "B"]);
    expect(table.texts).toEqual(["A", "one", "B", "two"]);
    await first.close();
    const second = await createRuntime({ store: await open(), pollMs: 10 });
    const after = team(table, {
      lead: [delegate("C"), "done", delegate("D"), "done"],
      worker: ["three", "four"],
    });
    second.register(after.agent);
    const run = await second.find(runId);
    await run?.topUp({ maxTurns: 9 });
    expect((await run?.result())?.output).toBe("done");
    expect(table.texts).toEqual(["A", "one", "B", "two", "C", "three"]);
    await (await second.submit(after.agent, "again", { sessionId })).result();
    expect(after.model.calls[1]?.messages.map(messageText)).toEqual([...table.texts.slice(0, 6), "D"]);
    expect(table.texts).toHaveLength(8);
    await second.close();
  });
});

it("R14: a history provider is empty after a crash at any write of a run with retention run", async () => {
  const workload = (table: Table) => ({
    agents: () => [clerk(["one"], table).agent] as const,
    input: "A",
    submit: { sessionId, retention: HistoryRetention.RUN },
  });
  const { writes } = await runWorkload(workload(new Table()));
  for (let at = 2; at <= writes; at++) {
    for (const when of ["before", "after"] as const) {
      const table = new Table();
      const { output } = await runWorkload(workload(table), { at, when });
      await until(() => table.clears > 0 && table.texts.length === 0);
      expect({ at, when, output, texts: table.texts }).toEqual({ at, when, output: "one", texts: [] });
    }
  }
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent, openRuntime, Sequential } from "../../../src/entries/index.ts";
import {
  formatAgentId,
  formatRunId,
  formatTopicId,
  type HostedAgent,
  type JsonValue,
  type Store,
} from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { until } from "../runtime-setup.ts";

/** An agent that follows the progress topic of a run and collects what it receives. */
function watcherOf(runId: string): { readonly agent: HostedAgent; readonly received: JsonValue[] } {
  const topic = formatTopicId({ type: "agent.progress", source: runId });
  const received: JsonValue[] = [];
  const agent: HostedAgent = {
    id: formatAgentId({ name: "watcher" }),
    run: async (ctx, inbox) => {
      if (inbox.messages.length === 0) await ctx.follow(topic);
      received.push(...inbox.messages.map(({ body }) => body));
      return null;
    },
  };
  return { agent, received };
}

const line = (): Sequential =>
  new Sequential({
    name: "line",
    steps: ["one", "two"].map((name) => new Agent({ name, model: scriptedModel([name]) })),
  });

test.for(["memory", "sqlite"] as const)(
  "a follower of the progress topic receives the progress of every agent of the run, in a %s store",
  async (kind) => {
    const folder = await mkdtemp(join(tmpdir(), "reeve-progress-"));
    const store = kind === "memory" ? "memory:" : (`sqlite:${join(folder, "runs.db")}` as const);
    const runId = formatRunId("watched");
    const { agent, received } = watcherOf(runId);
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    await (await runtime.submit(agent, null)).result();
    await (await runtime.submit(line(), "Go", { runId })).result();
    const ends = (): readonly JsonValue[] =>
      received.filter((body) => (body as { type: string }).type === "task_end");
    await until(() => ends().length === 3);
    const told = received.map((body) => {
      const { agentId, type } = body as { agentId: string; type: string };
      return `${agentId} ${type}`;
    });
    for (const name of ["line", "one", "two"])
      expect(told).toEqual(expect.arrayContaining([`${name} task_start`, `${name} task_end`]));
    expect(told).toEqual(expect.arrayContaining(["one turn_end", "two turn_end", "line flow_step_end"]));
    expect(new Set(received.map((body) => (body as { seq: number }).seq)).size).toBe(received.length);
    await runtime.close();
    await rm(folder, { recursive: true });
  },
);

test("a run without followers sends no progress", async () => {
  const { agent, received } = watcherOf(formatRunId("another"));
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  await (await runtime.submit(agent, null)).result();
  await (await runtime.submit(line(), "Go")).result();
  await runtime.close();
  expect(received).toEqual([]);
});

test("a run completes and reports the error if its store throws when the followers of its progress are read", async () => {
  const inner = memoryStore({ hash: sha256 });
  const asked = Promise.withResolvers<void>();
  const followers = (): never => {
    asked.resolve();
    throw new Error("the disk is gone");
  };
  const store: Store = { ...inner, topics: { ...inner.topics, followers } };
  const errors: unknown[] = [];
  const runtime = await createRuntime({ store, onError: (error) => errors.push(error) });
  const run = async (): Promise<string> => {
    // The run is idle when it asks.
    await asked.promise;
    return "done";
  };
  const agent: HostedAgent = { id: formatAgentId({ name: "worker" }), run };
  expect((await (await runtime.submit(agent, null)).result()).output).toBe("done");
  await runtime.close();
  expect(errors).toContainEqual(expect.objectContaining({ message: "the disk is gone" }));
});

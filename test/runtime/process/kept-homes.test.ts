import { expect, it } from "vitest";
import {
  formatSessionId,
  HistoryRetention,
  userMessage,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { agent, settle, setUp, type Bench } from "../runtime-setup.ts";

const keeper = agent("keeper", async (ctx) => {
  await ctx.keepHome("keeper-1");
  return "kept";
});

/** Creates the session in which the agent with a home folder works. */
async function talk(store: Store): Promise<void> {
  const entry = {
    type: "message",
    id: "m1",
    parentId: null,
    at: 0,
    runId: null,
    taskId: null,
    message: userMessage("hi"),
  } as const;
  const sessionId = formatSessionId("talk");
  await store.sessions.apply([
    { type: "append", sessionId, agentId: keeper.id, entry, visibility: "visible" },
  ]);
}

const session = { sessionId: "ses_talk" };

interface HomeBench extends Bench {
  /** The names of the home folders that were deleted, with their machines. */
  readonly removed: string[];
  readonly openOn: (host: string) => Promise<Runtime>;
}

async function homes(): Promise<HomeBench> {
  const removed: string[] = [];
  const options = (host: string) => ({
    host,
    removeHome: async (name: string) => void removed.push(`${host} ${name}`),
  });
  const bench = await setUp(options("here"));
  return { ...bench, removed, openOn: (host) => bench.open(options(host)) };
}

it("the home folder of a hired agent in a run with lasting history is deleted with the session, not with the run", async () => {
  const { runtime, removed, store } = await homes();
  await talk(store);
  for (let count = 0; count < 2; count++) await (await runtime.submit(keeper, null, session)).result();
  await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER });
  expect(removed).toEqual([]);
  await runtime.sessions.delete("ses_talk");
  expect(removed).toEqual(["here keeper-1"]);
  await runtime.sessions.delete("ses_talk");
  expect(removed).toHaveLength(1);
});

it("the home folder of a hired agent without lasting history is deleted with its last run, or at the end of its run", async () => {
  const { runtime, removed } = await homes();
  for (const runId of ["run_one", "run_two"])
    await (await runtime.submit(keeper, null, { runId, retention: HistoryRetention.RUN })).result();
  await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER, only: ["run_one"] });
  expect(removed).toEqual([]);
  await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER, only: ["run_two"] });
  expect(removed).toEqual(["here keeper-1"]);
  await (await runtime.submit(keeper, null, { retention: HistoryRetention.NONE })).result();
  await settle();
  expect(removed).toHaveLength(2);
});

it("the home folder of a hired agent is deleted by the next runtime on its machine if another machine deleted the session", async () => {
  const { runtime, removed, openOn, store } = await homes();
  await talk(store);
  await (await runtime.submit(keeper, null, session)).result();
  await runtime.close();
  const there = await openOn("there");
  await there.sessions.delete("ses_talk");
  expect(removed).toEqual([]);
  await openOn("here");
  await settle();
  expect(removed).toEqual(["here keeper-1"]);
});

it("the home folder of an unfinished run stays, and that of a run without a session is deleted with the run", async () => {
  const { runtime, removed } = await homes();
  const waiting = agent("waiting", async (ctx) => {
    await ctx.keepHome("waiting-1");
    await ctx.waitForSignal("go");
  });
  const run = await runtime.submit(waiting, null);
  await settle();
  await runtime.sessions.delete("other");
  expect(removed).toEqual([]);
  await run.cancel();
  await run.result();
  await runtime.collect({ endedBefore: Number.MAX_SAFE_INTEGER });
  expect(removed).toEqual(["here waiting-1"]);
});

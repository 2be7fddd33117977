import { expect, it } from "vitest";
import { parseRunId, type HostedAgent, type Runtime, type Store } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { dyingStore, FakeClock, type Death } from "../../../src/testing/index.ts";
import { agent, readAll, settle, spawnTask, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const runId = parseRunId("run_asks");

function question(name: string) {
  return { toolName: name, callId: name, input: { name }, reason: "test" };
}

const child: HostedAgent = agent("child", async (ctx) => (await ctx.approval(question("child"))).decision);

/** An agent that asks a person twice itself, in two branches, and once through a child. */
const lead: HostedAgent = agent(
  "lead",
  async (ctx) => {
    const both = await ctx.parallel({
      one: (branch) => branch.approval(question("one")),
      two: (branch) => branch.approval(question("two")),
    });
    const [ended] = await ctx.joinAll([await spawnTask(ctx, child)]);
    return [both.one.decision, both.two.decision, ended?.status ?? null];
  },
  { subAgents: [child] },
);

/** Submits the run if it does not exist, and answers its questions until it has ended or the process is dead. */
async function work(runtime: Runtime, isDead: () => boolean): Promise<void> {
  const run = await runtime.submit(lead, "go", { runId });
  for (;;) {
    await settle();
    if (isDead()) return;
    if ((await runtime.list()).runs[0]?.endedAt !== null) break;
    for (const { approvalId } of (await runtime.approvals()).approvals)
      await run.approve(approvalId, { decision: "approved" });
  }
  await run.result();
}

/** The open questions as the log shows them. */
async function openInLog(store: Store): Promise<readonly string[]> {
  const open = new Map<string, string>();
  if ((await store.journal.find(runId)) === undefined) return [];
  for (const { type, data, taskId } of await readAll(store, runId)) {
    if (type === "approval_request") open.set(data.approvalId, taskId);
    if (type === "approval_decision") open.delete(data.approvalId);
    if (type === "task_end") for (const [id, by] of open) if (by === taskId) open.delete(id);
  }
  return [...open.keys()];
}

async function openInStore({ journal }: Store): Promise<readonly string[]> {
  return (await journal.approvals()).approvals.map(({ approvalId }) => approvalId);
}

/**
 * Executes the workload in a process that dies at one write, and then in another process. Returns the number of writes
 * of the first process.
 */
async function dieAndRecover(store: Store, death: Death): Promise<number> {
  let hasDied = false;
  const doomed = dyingStore(store, { ...death, die: () => void (hasDied = true) });
  const clock = new FakeClock();
  const common = { clock, suspendAfterMs: 0, pollMs: 50 };
  const opening = createRuntime({ ...common, store: doomed, workerId: "doomed" });
  const working = opening.then((runtime) => work(runtime, () => hasDied));
  let hasWorked = false;
  working.then(
    () => (hasWorked = true),
    () => (hasWorked = true),
  );
  await until(() => hasDied || hasWorked);
  await settle();
  expect(await openInStore(store)).toEqual(await openInLog(store));
  await store.leases.dismiss("doomed");
  const next = await createRuntime({ ...common, store, workerId: "next" });
  next.register(lead);
  await work(next, () => false);
  expect(await openInStore(store)).toEqual([]);
  const events = await readAll(store, runId);
  const asked = events.filter(({ type }) => type === "approval_request").length;
  const decided = events.filter(({ type }) => type === "approval_decision").length;
  expect([asked, decided]).toEqual([3, 3]);
  expect((await (await next.find(runId))?.result())?.output).toEqual(["approved", "approved", "completed"]);
  await next.close();
  return doomed.writes;
}

for (const [storeName, prepare] of twoStores)
  it(`K4: the open questions on the ${storeName} store are those of the log wherever the worker dies, and each is asked and answered once`, async () => {
    const writes = await dieAndRecover(await (await prepare())(), { at: Infinity, when: "after" });
    expect(writes).toBeGreaterThan(8);
    for (let at = 1; at <= writes; at++)
      for (const when of ["before", "after"] as const)
        await dieAndRecover(await (await prepare())(), { at, when });
  });

import { describe, expect, it } from "vitest";
import { type HostedAgent, type OpenApproval, type Runtime } from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { findRun } from "../find-run.ts";
import { agent, setUp, settle, spawnTask, until } from "../runtime-setup.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const question = { toolName: "send", callId: "c1", input: { to: "bob" }, reason: "it sends a letter" };

/** An agent that asks a person and returns the decision. */
const asker: HostedAgent = agent("asker", async (ctx) => (await ctx.approval(question)).decision);

async function open(runtime: Runtime): Promise<readonly OpenApproval[]> {
  return (await runtime.approvals()).approvals;
}

/** Answers the oldest open question. */
async function answer(runtime: Runtime): Promise<void> {
  const [first] = await open(runtime);
  if (first === undefined) throw new Error("no question is open");
  await (await findRun(runtime, first)).approve(first.approvalId, { decision: "approved" });
}

for (const [storeName, prepare] of twoStores)
  describe(`approvals of runs on the ${storeName} store`, () => {
    it("K4: approvals() returns the questions of all runs with run, agent, tool, arguments, time, user and tenant", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const lead = agent(
        "lead",
        async (ctx) => {
          const [child] = await ctx.joinAll([await spawnTask(ctx, asker)]);
          return child?.status ?? null;
        },
        { subAgents: [asker] },
      );
      const first = await runtime.submit(asker, "go", { userId: "ann", tenantId: "acme" });
      await settle();
      await clock.advance(1_000);
      const second = await runtime.submit(lead, "go");
      await until(async () => (await open(runtime)).length === 2);
      const [one, other] = await open(runtime);
      expect(one).toMatchObject({
        ...question,
        kind: "question",
        runId: first.runId,
        sessionId: first.sessionId,
        agentId: asker.id,
        rootAgentId: asker.id,
        userId: "ann",
        tenantId: "acme",
        requestedAt: clock.now() - 1_000,
      });
      expect(other).toMatchObject({
        runId: second.runId,
        agentId: asker.id,
        rootAgentId: lead.id,
        taskId: "t1",
        userId: null,
        tenantId: null,
      });
      expect((await runtime.approvals({ tenantId: "acme" })).approvals).toEqual([one]);
      const acme = runtime.forTenant({ tenantId: "acme" });
      expect(await open(acme)).toEqual([one]);
      expect((await acme.approvals({ runId: second.runId })).approvals).toEqual([]);
      for (const scope of [{ tenantId: "other" }, { tenantId: "acme", userId: "bob" }])
        expect(await open(runtime.forTenant(scope))).toEqual([]);
      await expect(acme.approvals({ tenantId: "other" })).rejects.toMatchObject({ code: "invalid_argument" });
      await answer(runtime);
      expect((await first.result()).output).toBe("approved");
      expect(await open(runtime)).toEqual([other]);
    });

    it("K4: another process lists and answers a question after the process that asked it has ended", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const first = await createRuntime({ store: await openStore(), clock });
      const submitted = await first.submit(asker, "go");
      await until(async () => (await open(first)).length === 1);
      await first.close();
      await using second = await createRuntime({ store: await openStore(), clock });
      expect(await open(second)).toMatchObject([{ runId: submitted.runId }]);
      second.register(asker);
      const run = await findRun(second, submitted);
      expect(await run.pendingApprovals()).toMatchObject([question]);
      await answer(second);
      expect((await run.result()).output).toBe("approved");
      expect(await open(second)).toEqual([]);
    });

    it("K4: a cancelled run has no open question, and asks again when it is resumed", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const run = await runtime.submit(asker, "go");
      await until(async () => (await open(runtime)).length === 1);
      await run.cancel("wait");
      await run.result();
      expect(await open(runtime)).toEqual([]);
      await run.resume();
      await until(async () => (await open(runtime)).length === 1);
      expect(await run.pendingApprovals()).toMatchObject([question]);
      await answer(runtime);
      expect((await run.result()).output).toBe("approved");
    });

    it("K4: a question in the losing branch of a race is closed when another branch has won", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const racer = agent("racer", async (ctx) => {
        await ctx.race({
          person: async (branch) => (await branch.approval(question)).decision,
          time: async (branch) => (await branch.waitForSignal("late")) ?? null,
        });
        await ctx.waitForSignal("go");
        return null;
      });
      const run = await runtime.submit(racer, "go");
      await until(async () => (await open(runtime)).length === 1);
      await run.signal("late");
      await until(async () => (await open(runtime)).length === 0);
      expect(await run.pendingApprovals()).toEqual([]);
      await run.signal("go");
      expect((await run.result()).status).toBe("completed");
    });

    it("the first of two answers to one question counts, and the second is refused with the name of who answered first", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const store = await openStore();
      await using first = await createRuntime({ store, clock });
      const submitted = await first.submit(asker, "go");
      await until(async () => (await open(first)).length === 1);
      const run = await findRun(first, submitted);
      const [asked] = await open(first);
      const id = asked?.approvalId ?? "";
      const answers = await Promise.allSettled([
        run.as("ann").approve(id, { decision: "approved" }),
        run.as("bob").approve(id, { decision: "denied" }),
      ]);
      expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
      expect(answers[1]).toMatchObject({
        reason: { code: "already_exists", details: { by: "ann", decision: "approved", at: clock.now() } },
      });
      expect((await run.result()).output).toBe("approved");
    });

    it("an answer to a question that was already answered is refused while the run continues", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const patient = agent("patient", async (ctx) => {
        const { decision } = await ctx.approval(question);
        await ctx.waitForSignal("go");
        return decision;
      });
      const run = await runtime.submit(patient, "go", { userId: "ann" });
      await until(async () => (await open(runtime)).length === 1);
      const [asked] = await open(runtime);
      const id = asked?.approvalId ?? "";
      await run.approve(id, { decision: "skipped" });
      await until(async () => (await open(runtime)).length === 0);
      await expect(run.approve(id, { decision: "approved" })).rejects.toMatchObject({
        code: "already_exists",
        details: { by: "ann", decision: "skipped" },
      });
      await run.signal("go");
      expect((await run.result()).output).toBe("skipped");
    });

    it("summary() returns the run as list() does, and events({ follow: false }) ends at the last stored event", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      await using runtime = await createRuntime({ store: await openStore(), clock });
      const run = await runtime.submit(asker, "go", { tenantId: "acme" });
      await until(async () => (await open(runtime)).length === 1);
      const { runs } = await runtime.list();
      expect(await run.summary()).toEqual(runs[0]);
      const types: string[] = [];
      for await (const event of run.events({ follow: false, fromSeq: 1 })) types.push(event.type);
      expect(types.at(0)).toBe("task_start");
      expect(types).toContain("approval_request");
      const starts: number[] = [];
      for await (const event of run.events({ follow: false, types: ["run_start"] }))
        if ("seq" in event) starts.push(event.seq);
      expect(starts).toEqual([0]);
    });

    it("K4: a fork has open questions of its own, apart from those of its origin", async () => {
      const openStore = await prepare();
      const clock = new FakeClock();
      const store = await openStore();
      await using runtime = await createRuntime({ store, clock });
      const origin = await runtime.submit(asker, "go");
      await until(async () => (await open(runtime)).length === 1);
      const fork = await origin.fork({ at: await store.events.lastSeq(origin.runId) });
      expect((await open(runtime)).map(({ runId }) => runId)).toEqual([origin.runId, fork.runId]);
      await answer(runtime);
      await origin.result();
      expect((await open(runtime)).map(({ runId }) => runId)).toEqual([fork.runId]);
      await answer(runtime);
      expect((await fork.result()).output).toBe("approved");
    });
  });

it("approvals() refuses unknown fields, ids of other kinds, and calls after close()", async () => {
  const { runtime } = await setUp();
  await expect(runtime.approvals({ userID: "ann" } as never)).rejects.toThrow(/userID.*userId/u);
  for (const query of [{ runId: "ses_1" }, { runId: 7 }, { agentId: "" }, { limit: Number.NaN }])
    await expect(runtime.approvals(query as never)).rejects.toMatchObject({ code: "invalid_argument" });
  await runtime.close();
  await expect(runtime.approvals()).rejects.toMatchObject({ code: "closed" });
});

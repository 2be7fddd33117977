import {
  noUsage,
  eventDraft,
  formatAgentId,
  formatTaskId,
  type ApprovalQuery,
  type ApprovalRequest,
  type Commit,
  type Event,
  type EventDraft,
  type Lease,
  type RunRecord,
  type Store,
  type TaskId,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import {
  agentId,
  all,
  ownRun,
  placed,
  rootTask,
  runRecord,
  sessionId,
  stepRecord,
} from "./store-fixtures.ts";

/** Tests of the rules for open questions (K4) that every implementation of `Journal` must keep. */
export function approvalContract({ test, expect, open }: ContractHarness): void {
  const ids = async (store: Store, query: ApprovalQuery = {}): Promise<string[]> =>
    (await store.journal.approvals(query)).approvals.map(({ runId, approvalId }) => `${runId} ${approvalId}`);

  test("K4: a question to a person is open from the commit that asks it to the commit that holds the answer", async () => {
    const store = await open();
    const run = await Asker.of(store);
    expect(await store.journal.approvals()).toEqual({ approvals: [], next: null });
    await run.commit(ask("t0/1/x"));
    expect(await store.journal.approvals()).toEqual({
      approvals: [
        {
          ...request("t0/1/x"),
          runId: run.lease.runId,
          sessionId,
          rootAgentId: agentId,
          tenantId: null,
          userId: null,
          taskId: rootTask,
          agentId,
          requestedAt: 1,
        },
      ],
      next: null,
    });
    await run.commit(decide("t0/1/x"));
    expect(await ids(store)).toEqual([]);
  });

  test("K4: the end of a task closes the questions that this task has asked, and no other", async () => {
    const store = await open();
    const run = await Asker.of(store);
    const child = formatTaskId(1);
    await run.commit(ask("t0/1/x"), { ...ask("t1/1/x"), taskId: child });
    await run.commit({ ...taskEnd, taskId: child });
    expect(await ids(store)).toEqual(["run_a t0/1/x"]);
    await run.commit(taskEnd);
    expect(await ids(store)).toEqual([]);
  });

  test("K4: continueAsNew of a task closes its questions", async () => {
    const store = await open();
    const run = await Asker.of(store);
    await run.commit(ask("t0/1/x"));
    await run.append({ tasks: [{ type: "continue", taskId: rootTask, input: null }] });
    expect(await ids(store)).toEqual([]);
  });

  test("K4: the commit that records the result of a race closes the questions that its branches asked", async () => {
    const store = await open();
    const run = await Asker.of(store);
    for (const id of ["t0/1/left/0/x", "t0/1/x", "t0/10/left/0/x", "t0/1-/x"]) await run.commit(ask(id));
    const race = { ...stepRecord(1, { winner: "right", value: null }), kind: "race" } as const;
    await run.append({ steps: [race] });
    // An address is below the race only if it begins with the address of the race and a slash.
    expect(await ids(store)).toEqual(["run_a t0/10/left/0/x", "run_a t0/1-/x"]);
  });

  test("K4: a question that is asked, answered and asked again in one commit is open once", async () => {
    const store = await open();
    const run = await Asker.of(store);
    await run.commit(ask("t0/1/x"), decide("t0/1/x"), ask("t0/1/x"));
    expect(await ids(store)).toEqual(["run_a t0/1/x"]);
  });

  test("K4: a commit that is refused or repeated changes no open question", async () => {
    const store = await open();
    const run = await Asker.of(store);
    await run.commit(ask("t0/1/x"));
    const again = { number: 1, at: 9, events: [placed(run.lease.runId, 1, decide("t0/1/x"))] };
    await store.journal.append(run.lease, again);
    await store.leases.seize(run.lease.runId, "w2");
    await expect(run.commit(decide("t0/1/x"))).rejects.toMatchObject({ code: "lease_lost" });
    expect(await ids(store)).toEqual(["run_a t0/1/x"]);
  });

  test("K4: deleting a run closes its questions; releasing or suspending a run keeps them open", async () => {
    const store = await open();
    const run = await Asker.of(store);
    await run.commit(ask("t0/1/x"));
    await store.leases.release(run.lease, { kind: "suspended", wakeAt: null });
    expect(await ids(store)).toEqual(["run_a t0/1/x"]);
    await store.journal.delete(run.lease.runId);
    expect(await ids(store)).toEqual([]);
  });

  test("K4: the first commit of a run may ask a question, for example the first commit of a fork", async () => {
    const store = await open();
    const record = runRecord("f");
    const drafts = [ask("t0/1/x"), decide("t0/1/x"), ask("t0/2/y")];
    const events = drafts.map((draft, seq) => placed(record.runId, seq, draft));
    await store.journal.create(record, { number: 0, at: 1, events });
    expect(await ids(store)).toEqual(["run_f t0/2/y"]);
  });

  test("K4: approvals() returns the question that has waited longest first, page by page, while others are answered", async () => {
    const store = await open();
    const run = await Asker.of(store);
    for (const name of ["1", "2", "3", "4", "5"]) await run.commit(ask(`t0/${name}/x`));
    const first = await store.journal.approvals({ limit: 2 });
    expect(first.approvals.map(({ approvalId }) => approvalId)).toEqual(["t0/1/x", "t0/2/x"]);
    await run.commit(decide("t0/2/x"), decide("t0/3/x"));
    const second = await store.journal.approvals({ limit: 2, after: first.next ?? "" });
    expect(second.approvals.map(({ approvalId }) => approvalId)).toEqual(["t0/4/x", "t0/5/x"]);
    expect(second.next).toBe(null);
  });

  test("K4: approvals() returns the questions that match all given filters", async () => {
    const store = await open();
    const bob = formatAgentId({ name: "bob" });
    const runs: readonly (readonly [string, Partial<RunRecord>])[] = [
      ["a", {}],
      ["b", { userId: "ann" }],
      ["c", { userId: "ann", tenantId: "acme" }],
    ];
    for (const [name, more] of runs) {
      const run = await Asker.of(store, name, more);
      await run.commit(ask("t0/1/x"), { ...ask("t0/2/x"), agentId: bob });
    }
    expect(await ids(store, { runId: "run_b" })).toEqual(["run_b t0/1/x", "run_b t0/2/x"]);
    expect(await ids(store, { agentId: bob })).toEqual(["run_a t0/2/x", "run_b t0/2/x", "run_c t0/2/x"]);
    expect(await ids(store, { userId: "ann", agentId: bob })).toEqual(["run_b t0/2/x", "run_c t0/2/x"]);
    expect(await ids(store, { tenantId: "acme", agentId: bob })).toEqual(["run_c t0/2/x"]);
    expect(await ids(store, { tenantId: null, agentId: bob })).toEqual(["run_a t0/2/x", "run_b t0/2/x"]);
    expect(await ids(store, { userId: null, agentId: bob })).toEqual(["run_a t0/2/x"]);
    expect(await ids(store, { runId: "run_unknown" })).toEqual([]);
    const [acme] = (await store.journal.approvals({ tenantId: "acme" })).approvals;
    expect([acme?.userId, acme?.tenantId]).toEqual(["ann", "acme"]);
  });

  for (const query of [
    { limit: 0 },
    { limit: Number.NaN },
    { after: "x" },
    { after: "-1" },
    { userId: 7 },
    { tenantId: {} },
  ] as unknown as ApprovalQuery[])
    test(`K4: approvals() refuses the query ${JSON.stringify(query)}`, async () => {
      const store = await open();
      await expect(store.journal.approvals(query)).rejects.toMatchObject({ code: "invalid_argument" });
    });

  test("K4: approvals() matches the open questions that the whole event log implies, after random commits", async () => {
    const store = await open();
    const random = randomNumbers(7);
    const runs: Asker[] = [];
    for (const name of ["a", "b", "c"]) runs.push(await Asker.of(store, name));
    for (let round = 0; round < 120; round++) {
      const run = runs[random(runs.length)] as Asker;
      const taskId = formatTaskId(random(3));
      const id = `${taskId}/${random(4)}/x`;
      const kind = random(5);
      if (kind < 2) await run.commit({ ...ask(id), taskId });
      else if (kind < 4) await run.commit({ ...decide(id), taskId });
      else await run.commit({ ...taskEnd, taskId });
    }
    const expected = new Set<string>();
    for (const { lease } of runs) for (const id of await openIn(store, lease)) expected.add(id);
    expect((await ids(store)).toSorted()).toEqual([...expected].toSorted());
  });
}

/** Reads the whole log of a run. */
async function openIn(store: Store, { runId }: Lease): Promise<readonly string[]> {
  const pending = new Map<string, TaskId>();
  for (const { type, taskId, data } of await all(store.events.read(runId))) {
    if (type === "approval_request") pending.set(data.approvalId, taskId);
    if (type === "approval_decision") pending.delete(data.approvalId);
    if (type === "task_end") for (const [id, asker] of pending) if (asker === taskId) pending.delete(id);
  }
  return [...pending.keys()].map((id) => `${runId} ${id}`);
}

/** Returns pseudo-random integers below a bound, the same for each seed. */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

type DraftOfTask = EventDraft & Partial<Pick<Event, "taskId" | "agentId">>;

/** A run that asks. */
class Asker {
  readonly lease: Lease;
  readonly #store: Store;
  #number = 1;
  #seq = 1;

  private constructor(store: Store, lease: Lease) {
    this.#store = store;
    this.lease = lease;
  }

  static async of(store: Store, name = "a", more?: Partial<RunRecord>): Promise<Asker> {
    if (more === undefined) return new Asker(store, await ownRun(store, name));
    const record = { ...runRecord(name), ...more };
    await store.journal.create(record, { number: 0, at: 1 });
    await store.leases.enlist("w1");
    const lease = await store.leases.seize(record.runId, "w1");
    if (lease === undefined) throw new Error(`the new run ${record.runId} could not be seized`);
    const asker = new Asker(store, lease);
    asker.#seq = 0;
    return asker;
  }

  async commit(...drafts: DraftOfTask[]): Promise<void> {
    const { runId } = this.lease;
    const events = drafts.map((draft, index) => ({
      ...placed(runId, this.#seq + index, draft),
      ...placeOf(draft),
    }));
    await this.append({ events });
    this.#seq += drafts.length;
  }

  async append(commit: Omit<Commit, "number" | "at">): Promise<void> {
    await this.#store.journal.append(this.lease, { ...commit, number: this.#number, at: 1 });
    this.#number++;
  }
}

function placeOf({ taskId, agentId: asker }: DraftOfTask): Partial<Pick<Event, "taskId" | "agentId">> {
  return { ...(taskId && { taskId }), ...(asker && { agentId: asker }) };
}

function request(approvalId: string): ApprovalRequest {
  const call = { toolName: "send", callId: "c1", input: { to: "ann" }, inputDigest: "d", reason: "asks" };
  return { approvalId, kind: "tool_call", ...call };
}

function ask(approvalId: string): DraftOfTask {
  return eventDraft("approval_request", request(approvalId));
}

function decide(approvalId: string): DraftOfTask {
  return eventDraft("approval_decision", { approvalId, decision: { decision: "approved" } });
}

const taskEnd: DraftOfTask = eventDraft("task_end", {
  status: "completed",
  output: null,
  usage: noUsage,
});

import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  formatTopicId,
  userMessage,
  type AgentId,
  type Commit,
  type Lease,
  type InboxQuery,
  type Message,
  type Rest,
  type SessionChange,
  type Store,
} from "../../../../src/kernel/index.ts";
import { sha256 } from "../../../../src/runtime/process/sha256.ts";
import { memoryStore } from "../../../../src/runtime/stores/memory/store.ts";
import {
  all,
  rootTask,
  runRecord,
  stepRecord,
  turnStart,
} from "../../../../src/testing/contracts/store-fixtures.ts";
import { casesOf } from "../../../effort.ts";
import { newPath, openStore } from "./store-files.ts";

const names = ["a", "b", "c"] as const;
const workers = ["w1", "w2"] as const;
const agents = ["ann", "bob"].map((name) => formatAgentId({ name }));
const agent = fc.constantFrom(...agents);
const name = fc.constantFrom(...names);
const worker = fc.constantFrom(...workers);
const id = fc.constantFrom("1", "2", "3", "4");
const taskId = fc.constantFrom(0, 1).map(formatTaskId);
/** Builds a message whose sender, and whether it wants a reply, depend on its id only. */
const messageOf = (to: AgentId, messageId: string): Message => {
  const runId = formatRunId(Number(messageId) > 2 ? "a" : "b");
  return {
    id: messageId,
    from: null,
    to,
    body: { messageId },
    sentAt: 1,
    sender: { runId, userId: null, tenantId: null, metadata: {} },
    ...(messageId === "3" && { replyTo: { runId, taskId: rootTask, wait: "x" } }),
  };
};
const sessionOf = (which: string) => formatSessionId(which);

/** A store under test, with the leases that its user holds. */
interface Subject {
  readonly store: Store;
  readonly leases: Map<string, Lease>;
}

type Step = (subject: Subject) => Promise<unknown>;

const change: fc.Arbitrary<SessionChange> = fc.oneof(
  fc
    .record({
      session: name,
      agentId: agent,
      entryId: id,
      parentId: fc.option(id),
      run: name,
      taskId: fc.option(taskId),
      visibility: fc.constantFrom("pending", "hidden", "visible"),
      atLeaf: fc.boolean(),
    })
    .map(({ session, agentId, entryId, parentId, run, taskId: by, visibility, atLeaf }): SessionChange => ({
      type: "append",
      sessionId: sessionOf(session),
      agentId,
      visibility,
      ...(atLeaf && { atLeaf }),
      entry: {
        type: "message",
        id: entryId,
        parentId,
        at: Number(entryId),
        runId: formatRunId(run),
        taskId: by,
        message: userMessage(`${run} says ${entryId}`),
      },
    })),
  fc
    .record({
      session: name,
      run: name,
      taskId: fc.option(taskId),
      type: fc.constantFrom("reveal" as const, "remove" as const),
    })
    .map(({ session, run, taskId: by, type }): SessionChange => ({
      type,
      sessionId: sessionOf(session),
      runId: formatRunId(run),
      ...(by !== null && { taskId: by }),
    })),
);

const effects = fc.record(
  {
    sessions: fc.array(change, { maxLength: 3 }),
    mail: fc.array(
      fc.record({ run: name, id }).map(({ run, id: mailId }) => ({
        id: mailId,
        runId: formatRunId(run),
        from: "run",
        at: 1,
        body: { type: "resolve", taskId: rootTask, wait: mailId, value: [run] } as const,
      })),
      { maxLength: 2 },
    ),
    inbox: fc.array(
      fc.oneof(
        fc.record({ to: agent, id }).map(({ to, id: messageId }) => ({
          type: "deliver" as const,
          message: messageOf(to, messageId),
        })),
        fc.record({
          agentId: agent,
          messageIds: fc.array(id),
          type: fc.constantFrom("take" as const, "take" as const, "ack" as const, "nack" as const),
        }),
      ),
      { maxLength: 2 },
    ),
    topics: fc.array(
      fc.record({
        type: fc.constantFrom("follow" as const, "unfollow" as const),
        topicId: name.map((source) => formatTopicId({ type: "news", source })),
        agentId: agent,
      }),
      { maxLength: 2 },
    ),
    mailThrough: fc.nat(3),
  },
  { requiredKeys: [] },
);

const rest: fc.Arbitrary<Rest> = fc.oneof(
  fc.constantFrom<Rest>({ kind: "ended" }, { kind: "ready" }),
  fc.record({ kind: fc.constant("suspended" as const), wakeAt: fc.option(fc.nat(20)) }),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  name.map(
    (run): Step =>
      async ({ store }) =>
        store.journal.create(runRecord(run), { number: 0, at: 0, events: [turnStart(formatRunId(run), 0)] }),
  ),
  fc.record({ run: name, always: fc.boolean() }).map(({ run, always }): Step => async ({ store }) => {
    const body = { type: "steer", input: run } as const;
    const steering = { id: `submit ${run}`, from: "x", at: 1, body };
    return store.journal.create(runRecord(run), { number: 0, at: 0 }, { steering, always });
  }),
  fc.record({ run: name, worker }).map(({ run, worker: by }): Step => async ({ store, leases }) => {
    const lease = await store.leases.seize(formatRunId(run), by);
    if (lease === undefined) return undefined;
    leases.set(run, lease);
    const { lostOwner, lostAt: _lostAt, ...known } = lease;
    if (lostOwner === undefined) return known;
    // Only SQLite knows the machine of a lost owner, and each store notices the loss by its own clock.
    const { host: _host, at: _at, ...owner } = lostOwner;
    return { ...known, lostOwner: owner };
  }),
  fc
    .record({ run: name, skip: fc.constantFrom(0, 0, 0, 0, -1, 1), events: fc.nat(2), effects })
    .map(({ run, skip, events, effects: more }): Step => async ({ store, leases }) => {
      const lease = leases.get(run);
      if (lease === undefined) return "no lease";
      const commits = await all(store.journal.read(lease.runId));
      const number = Math.max(0, commits.length + skip);
      const seq = (await store.events.lastSeq(lease.runId)) + 1;
      const commit: Commit = {
        number,
        at: number,
        steps: [stepRecord(number, { run, number })],
        events: Array.from({ length: events }, (_, index) => turnStart(lease.runId, seq + index)),
        ...more,
      };
      return (await store.journal.append(lease, commit)).steps;
    }),
  fc.record({ run: name, rest }).map(({ run, rest: how }): Step => async ({ store, leases }) => {
    const lease = leases.get(run);
    return lease === undefined ? "no lease" : store.leases.release(lease, how);
  }),
  fc.record({ run: name }).map(({ run }): Step => async ({ store, leases }) => {
    const lease = leases.get(run);
    return lease === undefined ? "no lease" : store.leases.check(lease);
  }),
  fc.record({ worker, now: fc.nat(20) }).map(({ worker: by, now }): Step => async ({ store, leases }) => {
    const claimed = await store.leases.claim({ workerId: by, limit: 9, now });
    for (const lease of claimed) leases.set(lease.runId.slice("run_".length), lease);
    return claimed.map(({ runId, epoch }) => `${runId} ${epoch}`).toSorted();
  }),
  fc.record({ run: name, id }).map(
    ({ run, id: mailId }): Step =>
      ({ store }) =>
        store.mailbox.put({ id: mailId, runId: formatRunId(run), from: "x", at: 1, body: { type: "pause" } }),
  ),
  fc.record({ to: agent, id }).map(
    ({ to, id: messageId }): Step =>
      ({ store }) =>
        store.inbox.deliver(messageOf(to, messageId)),
  ),
  fc.record({ agent, id, at: fc.option(fc.nat(20), { nil: undefined }) }).map(
    ({ agent: of, id: messageId, at }): Step =>
      ({ store }) =>
        store.inbox.nack(of, [messageId], at),
  ),
  fc.record({ agent, id }).map(
    ({ agent: of, id: messageId }): Step =>
      ({ store }) =>
        store.inbox.redeliver(of, [messageId]),
  ),
  fc.record({ run: name, agent, messageIds: fc.uniqueArray(id, { maxLength: 2 }) }).map(
    ({ run, agent: of, messageIds }): Step =>
      async ({ store }) =>
        store.journal.create(runRecord(run), {
          number: 0,
          at: 0,
          inbox: [{ type: "take", agentId: of, messageIds }],
        }),
  ),
  fc.array(change, { maxLength: 3 }).map(
    (changes): Step =>
      ({ store }) =>
        store.sessions.apply(changes),
  ),
  name.map(
    (session): Step =>
      ({ store }) =>
        store.sessions.delete(sessionOf(session)),
  ),
  name.map(
    (run): Step =>
      ({ store }) =>
        store.journal.delete(formatRunId(run)),
  ),
);

const queries: readonly InboxQuery[] = ([undefined, ...names] as const).flatMap((run) =>
  (["each", "together"] as const).flatMap((mode) =>
    [1, 5_000].map((now) => ({ mode, now, ...(run !== undefined && { runId: formatRunId(run) }) })),
  ),
);

/** Reads everything that a user of the store can see. */
async function view(store: Store): Promise<unknown> {
  const runs = [];
  for (const run of names) {
    const runId = formatRunId(run);
    if ((await store.journal.find(runId)) === undefined) continue;
    const commits = await all(store.journal.read(runId));
    runs.push({
      run,
      steps: commits.map(({ number, steps = [] }) => [number, steps]),
      events: await all(store.events.read(runId)),
      // The head of a log differs between stores.
      verdict: { ...(await store.events.verify(runId)), head: null },
      mail: await store.mailbox.read(runId),
    });
  }
  return {
    runs,
    listed: (await store.journal.list()).runs.map(({ endedAt: _endedAt, ...each }) => each),
    sessions: await Promise.all(
      names.map(async (each) => store.sessions.read(sessionOf(each), { includeHidden: true })),
    ),
    inboxes: await Promise.all(agents.map((each) => store.inbox.peek(each))),
    next: await Promise.all(agents.flatMap((each) => queries.map((query) => store.inbox.next(each, query)))),
    dead: (await Promise.all(agents.map((each) => store.inbox.deadLetters(each)))).map((letters) =>
      letters.toSorted((one, other) => (one.message.id < other.message.id ? -1 : 1)),
    ),
    followers: await Promise.all(
      names.map(async (source) => store.topics.followers(formatTopicId({ type: "news", source }))),
    ),
  };
}

async function outcome(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return (error as { code?: string }).code ?? error;
  }
}

test("the SQLite store returns the same results as the memory store for any sequence of calls", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60 }), async (steps) => {
      const ours: Subject = { store: await openStore(await newPath()), leases: new Map() };
      const theirs: Subject = { store: memoryStore({ hash: sha256 }), leases: new Map() };
      for (const { store } of [ours, theirs]) await store.leases.enlist("w1");
      for (const take of steps) expect(await outcome(take(ours))).toEqual(await outcome(take(theirs)));
      expect(await view(ours.store)).toEqual(await view(theirs.store));
      await ours.store.close();
    }),
    { numRuns: casesOf(300, 50) },
  );
});

import {
  assistantMessage,
  eventDraft,
  formatAgentId,
  formatTaskId,
  noUsage,
  userMessage,
  type Commit,
  type Event,
  type JsonValue,
  type Lease,
  type Store,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { agentId, all, ownRun, placed, rootTask, runEnd, stepRecord } from "./store-fixtures.ts";

/** Tests of the rules that every store must keep when retention erases the texts of a run's tasks (E1). */
export function erasureContract({ test, expect, open }: ContractHarness): void {
  const child = formatTaskId(1);
  const helper = formatAgentId({ name: "helper" });
  const secret = "the words of the helper";

  const by = (event: Event): Event => ({ ...event, taskId: child, agentId: helper, parentId: rootTask });

  /** Creates a run in which the root and a helper each recorded a message and then ended. */
  const ended = async (store: Store, erases?: Commit["erases"]): Promise<Lease> => {
    const lease = await ownRun(store);
    const { runId } = lease;
    const message = assistantMessage(secret);
    const value = { message, stopReason: "stop", usage: noUsage, model: { provider: "p", modelId: "m" } };
    const told = (text: string): Event<"message_end"> =>
      placed(
        runId,
        0,
        eventDraft("message_end", { message: assistantMessage(text) }),
      ) as Event<"message_end">;
    await store.journal.append(lease, {
      number: 1,
      at: 2,
      steps: [
        { ...stepRecord(0, value as unknown as JsonValue), kind: "llm", taskId: child },
        { ...stepRecord(1, secret), taskId: child },
        stepRecord(2, "the root's own"),
      ],
      requests: [
        {
          taskId: child,
          address: stepRecord(0, null).address,
          frame: { instructions: "h", settings: { stopSequences: [secret] } },
          messages: { base: null, pieces: [userMessage(secret)] },
          contents: { h: secret },
        },
      ],
      events: [
        { ...by(told(secret)), seq: 1 },
        { ...told("the root's own"), seq: 2 },
      ],
      resolves: [{ taskId: child, wait: "w", value: secret }],
      inbox: [
        {
          type: "deliver",
          message: {
            id: "m",
            from: helper,
            to: agentId,
            body: secret,
            sentAt: 1,
            sender: { runId, userId: null, tenantId: null, metadata: { secret } },
          },
        },
      ],
    });
    await store.journal.append(lease, {
      number: 2,
      at: 3,
      tasks: [
        { type: "end", taskId: child, outcome: { status: "completed", output: "the answer", failure: null } },
      ],
      events: [
        by(placed(runId, 3, eventDraft("task_end", { status: "completed", output: "the answer" }))),
        runEnd(runId, 4),
      ],
      ...(erases === undefined ? {} : { erases }),
    });
    return lease;
  };

  const everything = async (store: Store, { runId }: Lease): Promise<string> =>
    JSON.stringify([await all(store.journal.read(runId)), await all(store.events.read(runId))]);

  test("E1: no reader gets the texts of erased tasks, and the texts of other tasks stay", async () => {
    const store = await open();
    const lease = await ended(store, [{ taskId: child, agentId: helper }]);
    const text = await everything(store, lease);
    expect([text.includes(secret), text.includes("the root's own")]).toEqual([false, true]);
    const events = await all(store.events.read(lease.runId));
    expect(events.map(({ seq, taskId, type, erased }) => [seq, taskId, type, erased === true])).toEqual([
      [0, "t0", "run_start", false],
      [1, "t1", "message_end", true],
      [2, "t0", "message_end", false],
      [3, "t1", "task_end", false],
      [4, "t0", "run_end", false],
    ]);
  });

  test("E1: erasing keeps the addresses and digests of steps, the usage and the outcome", async () => {
    const store = await open();
    const lease = await ended(store, [{ taskId: child, agentId: helper }]);
    const commits = await all(store.journal.read(lease.runId));
    expect(commits.flatMap(({ requests = [] }) => requests)).toEqual([
      { taskId: child, address: "0", frame: { instructions: "h" } },
    ]);
    const [call, step] = commits.flatMap(({ steps = [] }) => steps);
    expect([call?.address, step?.address, step?.digest, step?.outcome]).toEqual([
      "0",
      "1",
      "digest-1",
      { kind: "ok", value: null },
    ]);
    const usage = call?.outcome.kind === "ok" && (call.outcome.value as { usage: JsonValue }).usage;
    expect(usage).toEqual(noUsage);
    expect((await everything(store, lease)).includes("the answer")).toBe(true);
  });

  test("E1: the hash chain verifies after erasing and still contains its earlier head", async () => {
    const store = await open();
    const lease = await ended(store);
    const { runId } = lease;
    const { head } = (await store.events.verify(runId)) as { head: string };
    const erases = [{ taskId: child, agentId: helper }];
    await store.journal.append(lease, { number: 3, at: 4, events: [runEnd(runId, 5)], erases });
    expect((await everything(store, lease)).includes(secret)).toBe(false);
    const verdict = await store.events.verify(runId, head);
    expect(verdict.ok && [verdict.events, verdict.sinceHead]).toEqual([6, 1]);
  });

  test("E1: a further task can be erased after the run was resumed and ended again", async () => {
    const store = await open();
    const lease = await ended(store, [{ taskId: child, agentId: helper }]);
    const { head } = (await store.events.verify(lease.runId)) as { head: string };
    const events = [runEnd(lease.runId, 5)];
    const erases = [{ taskId: rootTask, agentId }];
    await store.journal.append(lease, { number: 3, at: 4, events, erases });
    expect((await everything(store, lease)).includes("own")).toBe(false);
    const verdict = await store.events.verify(lease.runId);
    expect(verdict.ok && verdict.head !== head).toBe(true);
  });
}

import {
  formatAgentId,
  formatRunId,
  redeliveryDelayMs,
  type AgentId,
  type Creation,
  type Delivery,
  type Inbox,
  type InboxMode,
  type Message,
  type RunId,
  type Store,
  type MaybePromise,
} from "../../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";
import { ownRun, rootTask, runRecord } from "./store-fixtures.ts";

/** Tests of the rules that every implementation of `Inbox` must keep. */
export function inboxContract({ test, expect, open }: ContractHarness): void {
  const to = formatAgentId({ name: "reader" });
  const ann = formatAgentId({ name: "ann" });
  const bob = formatAgentId({ name: "bob" });
  const message = (id: string, from = ann): Message => ({ id, from, to, body: { n: id }, sentAt: 1 });
  const ids = (deliveries: readonly Delivery[]): string[] => deliveries.map(({ message: { id } }) => id);

  /** Returns a message that a run of the sender sends. If `asks` is `true`, the sender expects a reply. */
  const inRun = (id: string, run: string, { from = ann, asks = false } = {}): Message => {
    const runId = formatRunId(run);
    return {
      ...message(id, from),
      sender: { runId, userId: null, tenantId: null, metadata: {} },
      ...(asks && { replyTo: { runId, taskId: rootTask, wait: id } }),
    };
  };
  const takes = (messageIds: readonly string[], agentId: AgentId = to) =>
    ({ type: "take", agentId, messageIds }) as const;
  /** Creates a run that starts with these messages. */
  const begin = ({ journal }: Store, run: string, messageIds: readonly string[]): MaybePromise<Creation> =>
    journal.create(runRecord(run), { number: 0, at: 1, inbox: [takes(messageIds)] });
  const next = async (inbox: Inbox, mode: InboxMode = "each", runId?: RunId, now = 0): Promise<string[]> => {
    const query = { mode, now, ...(runId !== undefined && { runId }) };
    return ids((await inbox.next(to, query)).deliveries);
  };

  test("I1: delivering the same message twice stores it once, also after it was acknowledged", async () => {
    const { inbox } = await open();
    expect(await inbox.deliver(message("a"))).toBe(true);
    expect(await inbox.deliver(message("a"))).toBe(false);
    await inbox.ack(to, ["a"]);
    expect(await inbox.deliver(message("a"))).toBe(false);
    expect(await inbox.peek(to)).toEqual([]);
  });

  test("I2: messages of one sender keep their order, also when one of them is returned", async () => {
    const { inbox } = await open();
    const sent = [message("a1"), message("b1", bob), message("a2"), message("b2", bob)];
    for (const each of sent) await inbox.deliver(each);
    await inbox.nack(to, ["a1"]);
    const drained = await inbox.peek(to);
    expect(ids(drained.filter((each) => each.message.from === ann))).toEqual(["a1", "a2"]);
    expect(ids(drained.filter((each) => each.message.from === bob))).toEqual(["b1", "b2"]);
    expect(drained.map(({ deliveries }) => deliveries)).toEqual([1, 0, 0, 0]);
  });

  test("I3: peek() removes no message and returns at most its limit", async () => {
    const { inbox } = await open();
    for (let count = 0; count < 150; count++) await inbox.deliver(message(`m${count}`));
    expect((await inbox.peek(to)).length).toBe(100);
    expect((await inbox.peek(to)).length).toBe(100);
    expect(ids(await inbox.peek(to, 2))).toEqual(["m0", "m1"]);
    expect((await inbox.peek(to, 500)).length).toBe(150);
  });

  test("I3: only acknowledged messages are removed", async () => {
    const { inbox } = await open();
    for (const id of ["a", "b", "c"]) await inbox.deliver(message(id));
    await inbox.ack(to, ["b", "unknown"]);
    expect(ids(await inbox.peek(to))).toEqual(["a", "c"]);
  });

  test("I4: a message that is returned too often becomes a dead letter, which is kept and not delivered", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("bad"));
    await inbox.deliver(message("good"));
    for (let round = 0; round < 100 && (await inbox.deadLetters(to)).length === 0; round++)
      await inbox.nack(to, ["bad"]);
    const [dead] = await inbox.deadLetters(to);
    expect(dead?.message).toEqual(message("bad"));
    expect(ids(await inbox.peek(to))).toEqual(["good"]);
    expect(await inbox.deliver(message("bad"))).toBe(false);
  });

  test("I4: dead letters are listed in the order in which they became dead letters", async () => {
    const { inbox } = await open();
    for (const id of ["a", "b", "c", "d"]) await inbox.deliver(message(id));
    for (const dying of [["c"], ["d", "b"], ["a"]])
      for (let round = 0; round < inbox.settings.maxDeliveries; round++) await inbox.nack(to, dying);
    expect(ids(await inbox.deadLetters(to))).toEqual(["c", "b", "d", "a"]);
  });

  test("I4: a message that one nack() names several times is returned once", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    await inbox.nack(to, ["a", "a", "a"]);
    expect((await inbox.peek(to)).map(({ deliveries }) => deliveries)).toEqual([1]);
  });

  test("waiting() returns the agents that have a waiting message", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    expect(await inbox.waiting([bob, to])).toEqual([to]);
    await inbox.ack(to, ["a"]);
    expect(await inbox.waiting([bob, to])).toEqual([]);
  });

  test("find() returns the messages that are not acknowledged, dead letters included", async () => {
    const { inbox } = await open();
    for (const id of ["a", "b", "c", "d"]) await inbox.deliver(message(id));
    await inbox.ack(to, ["b"]);
    await inbox.nack(to, ["c"]);
    for (let round = 0; round < inbox.settings.maxDeliveries; round++) await inbox.nack(to, ["d"]);
    expect(await inbox.find(to, ["c", "b", "a", "d", "unknown"])).toEqual([
      { message: message("c"), deliveries: 1 },
      { message: message("a"), deliveries: 0 },
      { message: message("d"), deliveries: inbox.settings.maxDeliveries },
    ]);
  });

  test("I2: next() returns the first message of each sender, and the second one once the first is acknowledged", async () => {
    const { inbox } = await open();
    for (const each of [inRun("a1", "x"), inRun("a2", "x"), inRun("b1", "y", { from: bob })])
      await inbox.deliver(each);
    expect(await next(inbox)).toEqual(["a1", "b1"]);
    await inbox.ack(to, ["a1"]);
    expect((await next(inbox)).toSorted()).toEqual(["a2", "b1"]);
  });

  test("I2: a message that an agent sends in one run does not wait for its messages from another run", async () => {
    const { inbox } = await open();
    for (const each of [inRun("a1", "x"), inRun("a2", "y"), message("o1"), message("o2")])
      await inbox.deliver(each);
    expect(await next(inbox)).toEqual(["a1", "a2", "o1"]);
  });

  test("I2: a question waits for earlier messages that are not questions, and no message waits for its answer", async () => {
    const { inbox } = await open();
    const asks = { asks: true };
    for (const each of [
      inRun("q1", "x", asks),
      inRun("s1", "x"),
      inRun("q2", "x", asks),
      inRun("q3", "x", asks),
    ])
      await inbox.deliver(each);
    expect(await next(inbox)).toEqual(["q1", "s1"]);
    await inbox.ack(to, ["s1"]);
    expect(await next(inbox)).toEqual(["q1", "q2", "q3"]);
  });

  test("I2: in mode together, next() returns all waiting messages in order of arrival, unless another run holds one", async () => {
    const store = await open();
    const { inbox } = store;
    for (const each of [inRun("a1", "x"), inRun("b1", "y", { from: bob }), inRun("a2", "x")])
      await inbox.deliver(each);
    expect(await next(inbox, "together")).toEqual(["a1", "b1", "a2"]);
    await begin(store, "r", ["b1"]);
    expect(await next(inbox, "together")).toEqual([]);
    expect(await next(inbox, "together", formatRunId("r"))).toEqual(["a1", "a2"]);
  });

  test("I2: a run receives further messages of the senders from which it has unacknowledged messages", async () => {
    const store = await open();
    const { inbox } = store;
    for (const each of [inRun("a1", "x"), inRun("b1", "y", { from: bob }), inRun("a2", "x")])
      await inbox.deliver(each);
    await begin(store, "r", ["a1"]);
    expect(await next(inbox, "each", formatRunId("r"))).toEqual(["a2"]);
    expect(await next(inbox, "each", formatRunId("s"))).toEqual([]);
    expect(await next(inbox)).toEqual(["b1"]);
  });

  test("S6: next() with a tenant returns the messages of its senders, however many messages of others wait before", async () => {
    const store = await open();
    const { inbox } = store;
    const ofTenant = (id: string, tenantId: string | null): Message => ({
      ...message(id),
      sender: { runId: formatRunId(`sends-${id}`), userId: null, tenantId, metadata: {} },
    });
    await inbox.deliver(ofTenant("first", "acme"));
    await begin(store, "r", ["first"]);
    for (const id of ["g1", "g2", "g3"]) await inbox.deliver(ofTenant(id, "globex"));
    await inbox.deliver(ofTenant("none", null));
    await inbox.deliver(ofTenant("second", "acme"));
    for (const [tenantId, expected] of [
      ["acme", ["second"]],
      ["globex", ["g1", "g2"]],
      [null, ["none"]],
    ] as const) {
      const query = { now: 0, limit: 2, tenantId };
      const { deliveries } = await inbox.next(to, { ...query, mode: "together", runId: formatRunId("r") });
      expect(ids(deliveries)).toEqual(expected);
      expect(ids((await inbox.next(to, { ...query, mode: "each" })).deliveries)).toEqual(expected);
    }
  });

  test("I3: next() returns at most its limit, also when it is called again", async () => {
    const { inbox } = await open();
    for (let count = 0; count < 150; count++) await inbox.deliver(inRun(`m${count}`, `r${count}`));
    expect((await next(inbox)).length).toBe(100);
    expect((await next(inbox)).length).toBe(100);
    const { deliveries } = await inbox.next(to, { mode: "each", now: 0, limit: 2 });
    expect(ids(deliveries)).toEqual(["m0", "m1"]);
  });

  test("I4: dead letters of all agents are listed, and a redelivered one counts as newly arrived", async () => {
    const { inbox } = await open();
    const kill = async (agentId: AgentId, id: string): Promise<void> => {
      for (let round = 0; round < inbox.settings.maxDeliveries; round++) await inbox.nack(agentId, [id], 5);
    };
    for (const id of ["a", "b", "c"]) await inbox.deliver(message(id));
    await inbox.deliver({ ...message("d"), to: bob });
    for (const id of ["b", "a"]) await kill(to, id);
    await kill(bob, "d");
    expect(ids(await inbox.deadLetters())).toEqual(["d", "b", "a"]);
    expect(await inbox.redeliver(to, ["a", "c", "unknown"])).toBe(1);
    expect(ids(await inbox.deadLetters(to))).toEqual(["b"]);
    expect(await inbox.peek(to)).toEqual([
      { message: message("c"), deliveries: 0 },
      { message: message("a"), deliveries: 0, redelivered: 1 },
    ]);
    expect(await inbox.redeliver(to)).toBe(1);
    expect(await inbox.redeliver(to)).toBe(0);
    expect(await next(inbox)).toEqual(["c"]);
    expect(ids(await inbox.peek(to))).toEqual(["c", "a", "b"]);
    expect(await inbox.deliver(message("a"))).toBe(false);
  });

  test("I5: a message belongs to one run: the run that is created with it first", async () => {
    const store = await open();
    const { inbox, journal } = store;
    await inbox.deliver(message("a"));
    await inbox.deliver(message("b", bob));
    expect(await begin(store, "r", ["a"])).toEqual({ kind: "created" });
    expect(await begin(store, "s", ["b", "a"])).toEqual({ kind: "taken" });
    expect(await begin(store, "s", ["unknown"])).toEqual({ kind: "taken" });
    expect(await journal.find(formatRunId("s"))).toBeUndefined();
    expect(await next(inbox)).toEqual(["b"]);
    expect(await inbox.waiting([to])).toEqual([to]);
    await inbox.ack(to, ["b"]);
    expect(await inbox.waiting([to])).toEqual([]);
    expect(await inbox.peek(to)).toEqual([{ message: message("a"), deliveries: 0, runId: formatRunId("r") }]);
  });

  test("I5: a commit cannot take, acknowledge or return a message that another run holds", async () => {
    const store = await open();
    const { inbox, journal } = store;
    await inbox.deliver(message("a"));
    await begin(store, "r", ["a"]);
    const lease = await ownRun(store, "other");
    for (const [index, type] of (["take", "ack", "nack"] as const).entries())
      await journal.append(lease, {
        number: index + 1,
        at: 1,
        inbox: [{ type, agentId: to, messageIds: ["a"] }],
      });
    expect(await inbox.peek(to)).toEqual([{ message: message("a"), deliveries: 0, runId: formatRunId("r") }]);
  });

  test("I5: a run takes further messages with one commit and returns a message with another commit", async () => {
    const store = await open();
    const { inbox, journal } = store;
    for (const id of ["a", "b"]) await inbox.deliver(message(id));
    const lease = await ownRun(store, "r");
    await journal.append(lease, { number: 1, at: 1, inbox: [takes(["a", "b"])] });
    expect(await next(inbox)).toEqual([]);
    const nack = { type: "nack", agentId: to, messageIds: ["a"] } as const;
    const ack = { type: "ack", agentId: to, messageIds: ["b"] } as const;
    await journal.append(lease, { number: 2, at: 7, inbox: [ack, nack, nack] });
    const { runId } = lease;
    const notBefore = 7 + redeliveryDelayMs(1, inbox.settings);
    expect(await inbox.peek(to)).toEqual([{ message: message("a"), deliveries: 1, notBefore, runId }]);
  });

  test("I5: only the run that last held a dead letter can take it again", async () => {
    const store = await open();
    const { inbox, journal } = store;
    await inbox.deliver(message("a"));
    const lease = await ownRun(store, "r");
    const other = await ownRun(store, "s");
    await journal.append(lease, { number: 1, at: 1, inbox: [takes(["a"])] });
    for (let round = 0; round < inbox.settings.maxDeliveries; round++) await inbox.nack(to, ["a"]);
    await journal.append(other, { number: 1, at: 1, inbox: [takes(["a"])] });
    expect((await inbox.deadLetters(to)).map(({ runId }) => runId)).toEqual([lease.runId]);
    await journal.append(lease, { number: 2, at: 1, inbox: [takes(["a"])] });
    expect(await inbox.deadLetters(to)).toEqual([]);
    expect(await next(inbox)).toEqual([]);
    await journal.append(lease, {
      number: 3,
      at: 1,
      inbox: [{ type: "ack", agentId: to, messageIds: ["a"] }],
    });
    expect(await inbox.peek(to)).toEqual([]);
  });

  test("I5: deleting a run frees the messages that it holds", async () => {
    const store = await open();
    const { inbox, journal } = store;
    for (const id of ["a", "b"]) await inbox.deliver(message(id));
    await begin(store, "r", ["a"]);
    await journal.delete(formatRunId("r"));
    expect(await next(inbox)).toEqual(["a"]);
    expect(await begin(store, "r", ["a"])).toEqual({ kind: "created" });
  });

  test("I6: a returned message waits longer after each return, and later messages of its sender wait too", async () => {
    const { inbox } = await open();
    for (const each of [inRun("a1", "x"), inRun("a2", "x"), inRun("b1", "y", { from: bob })])
      await inbox.deliver(each);
    await inbox.nack(to, ["a1"], 100);
    expect(await next(inbox, "each", undefined, 1_099)).toEqual(["b1"]);
    expect((await inbox.next(to, { mode: "each", now: 1_099 })).at).toBe(1_100);
    expect(await next(inbox, "together", undefined, 1_099)).toEqual(["b1"]);
    expect(await next(inbox, "together", undefined, 1_100)).toEqual(["a1", "a2", "b1"]);
    expect((await next(inbox, "each", undefined, 1_100)).toSorted()).toEqual(["a1", "b1"]);
    expect((await inbox.next(to, { mode: "each", now: 1_100 })).at).toBe(null);
    await inbox.nack(to, ["a1"], 1_100);
    expect((await inbox.next(to, { mode: "each", now: 1_100 })).at).toBe(5_100);
  });

  test("an agent does not see the messages of another agent", async () => {
    const { inbox } = await open();
    await inbox.deliver(message("a"));
    expect(await inbox.peek(bob)).toEqual([]);
    expect(await inbox.deliver({ ...message("a"), to: bob })).toBe(true);
  });
}

import assert from "node:assert/strict";
import fc from "fast-check";
import {
  formatTaskId,
  stepAt,
  Supervision,
  unlimitedBudget,
  type Commit,
  type JsonValue,
  type Lease,
  type Store,
  type TaskRecord,
} from "../../../src/kernel/index.ts";
import { RunState } from "../../../src/runtime/journal/run-state.ts";
import { WaitRegistry, type Wait } from "../../../src/runtime/task/wait-registry.ts";
import { FakeClock } from "../../../src/testing/index.ts";
import { agentId, ownRun } from "../../../src/testing/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

type Move =
  | { readonly type: "resolve"; readonly name: number }
  /** `ms`: it waits so long at most. */
  | { readonly type: "wait"; readonly name: number; readonly ms: number | null }
  /** The oldest waiter that has something, or whose time was up, records it. */
  | { readonly type: "record"; readonly name: number }
  | { readonly type: "leave"; readonly name: number }
  | { readonly type: "later"; readonly ms: number }
  /** The process dies: waiters are gone, the state is folded from what is stored. */
  | { readonly type: "die" };

const name = fc.integer({ min: 0, max: 1 });
const moves = fc.array(
  fc.oneof(
    fc.record({ type: fc.constantFrom("resolve" as const, "record" as const, "leave" as const), name }),
    fc.record({ type: fc.constant("wait" as const), name, ms: fc.constantFrom(null, null, 0, 5, 10) }),
    fc.record({ type: fc.constant("later" as const), ms: fc.constantFrom(3, 5, 20) }),
    fc.constant({ type: "die" as const }),
  ),
  { maxLength: 14 },
);

const taskId = formatTaskId(0);

function rootTask(): TaskRecord {
  const supervision = Supervision.root(agentId, { ids: { next: () => "a" } }).toJSON();
  return {
    taskId,
    agentId,
    parentId: null,
    supervision,
    budget: unlimitedBudget,
    input: null,
    messages: [],
    userId: null,
    metadata: {},
    streaming: false,
    onParentEnd: "wait",
    onPause: "suspend",
    tools: null,
  };
}

interface Waiting {
  readonly wait: Wait;
  readonly name: number;
  /** Since when it has waited long enough. */
  readonly until: number;
  outcome: { readonly value: JsonValue | undefined; readonly at: number } | null;
}

/** A run's waits, its state as the store has it, and what each recorded wait got. */
class Room {
  readonly got: JsonValue[][] = [[], []];
  readonly sent: JsonValue[][] = [[], []];
  readonly clock = new FakeClock();
  waiting: Waiting[] = [];
  readonly #store: Store;
  readonly #lease: Lease;
  #state = new RunState("refuse");
  #waits = new WaitRegistry(this.clock, this.#state.resolutions);
  #commits = 1;
  #steps = 0;

  constructor(store: Store, lease: Lease) {
    this.#store = store;
    this.#lease = lease;
  }

  /** What an owner does: the state changes at once, and what is stored with it. */
  async commit(change: Omit<Commit, "number" | "at">): Promise<void> {
    const commit = { ...change, number: this.#commits++, at: this.clock.now() };
    this.#state.apply(commit, commit.at);
    await this.#store.journal.append(this.#lease, commit);
  }

  async die(): Promise<void> {
    this.#waits.forget();
    this.#state = new RunState("refuse");
    for await (const commit of this.#store.journal.read(this.#lease.runId, 1)) this.#state.fold(commit);
    this.#waits = new WaitRegistry(this.clock, this.#state.resolutions);
    this.waiting = [];
  }

  async resolve(which: number): Promise<void> {
    const value = `${which}.${this.sent[which]?.length}`;
    this.sent[which]?.push(value);
    await this.commit({ resolves: [{ taskId, wait: `signal ${which}`, value }] });
    this.#waits.serve(taskId, `signal ${which}`);
  }

  wait(which: number, ms: number | null): void {
    const until = ms === null ? Infinity : this.clock.now() + ms;
    const due = ms === null ? undefined : () => until;
    const wait = this.#waits.wait(taskId, `signal ${which}`, due);
    const each: Waiting = { wait, name: which, until, outcome: null };
    void wait.came.then((value) => (each.outcome = { value, at: this.clock.now() }));
    this.waiting.push(each);
  }

  leave(which: number): void {
    const first = this.waiting.find((each) => each.name === which);
    first?.wait.leave();
    this.waiting = this.waiting.filter((each) => each !== first);
  }

  async record(which: number): Promise<void> {
    const served = this.waiting.find((each) => each.name === which && each.outcome !== null);
    if (served === undefined) return;
    const value = served.outcome?.value;
    this.waiting = this.waiting.filter((each) => each !== served);
    if (value !== undefined) this.got[which]?.push(value);
    const outcome = { kind: "ok", value: value === undefined ? {} : { value } } as const;
    const address = stepAt("", this.#steps++);
    const step = { taskId, address, kind: "wait", name: `signal ${which}`, digest: "", outcome } as const;
    await this.commit({ steps: [step] });
    if (value !== undefined) this.#waits.taken(taskId, step.name);
  }

  /** Who waits for what is there has it, one at a time. */
  checkServed(): void {
    for (const which of [0, 1]) {
      const left = (this.sent[which]?.length ?? 0) - (this.got[which]?.length ?? 0);
      const live = this.waiting.filter((each) => each.name === which && !isLate(each));
      const served = live.filter(({ outcome }) => outcome !== null).length;
      assert.equal(served, left > 0 && live.length > 0 ? 1 : 0);
    }
  }

  /** Nobody waits in vain beyond their time, and nobody is told that it is up before it is. */
  checkTimes(): void {
    const now = this.clock.now();
    for (const { until, outcome } of this.waiting) {
      if (outcome === null) assert.ok(until > now, "a wait is over and was not told");
      else if (outcome.value === undefined) assert.ok(outcome.at >= until, "a wait was told before its time");
    }
  }
}

function isLate({ outcome }: Waiting): boolean {
  return outcome !== null && outcome.value === undefined;
}

/** Every value goes to one recorded wait, in the order in which they came, whoever dies, leaves or is late (W1, W2). */
export const waitsModel: Model = (open) =>
  onStore(moves, open, async (store, sequence: readonly Move[]) => {
    const room = new Room(store, await ownRun(store));
    await room.commit({ tasks: [{ type: "create", task: rootTask() }] });
    for (const move of sequence) {
      if (move.type === "die") await room.die();
      else if (move.type === "later") await room.clock.advance(move.ms);
      else if (move.type === "resolve") await room.resolve(move.name);
      else if (move.type === "wait") room.wait(move.name, move.ms);
      else if (move.type === "leave") room.leave(move.name);
      else await room.record(move.name);
      await Promise.resolve();
      room.checkTimes();
      room.checkServed();
    }
    // Whoever comes after finds all that is left, and nothing else.
    await room.die();
    for (const which of [0, 1]) {
      const left = (room.sent[which]?.length ?? 0) - (room.got[which]?.length ?? 0);
      for (let each = 0; each <= left; each++) {
        room.wait(which, 0);
        await Promise.resolve();
        await room.record(which);
      }
    }
    assert.deepEqual(room.got, room.sent);
  });

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
import { agentId, ownRun } from "../../../src/testing/contracts/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

type Move =
  | { readonly type: "resolve"; readonly name: number }
  /** `ms` is the timeout. `null` means none. */
  | { readonly type: "wait"; readonly name: number; readonly ms: number | null }
  /** The oldest wait that has received a value or has timed out is recorded. */
  | { readonly type: "record"; readonly name: number }
  | { readonly type: "leave"; readonly name: number }
  | { readonly type: "advance"; readonly ms: number }
  /** The process crashes: its waits disappear, and the state is computed again from the stored commits. */
  | { readonly type: "crash" };

const name = fc.integer({ min: 0, max: 1 });
const moves = fc.array(
  fc.oneof(
    fc.record({ type: fc.constantFrom("resolve" as const, "record" as const, "leave" as const), name }),
    fc.record({ type: fc.constant("wait" as const), name, ms: fc.constantFrom(null, null, 0, 5, 10) }),
    fc.record({ type: fc.constant("advance" as const), ms: fc.constantFrom(3, 5, 20) }),
    fc.constant({ type: "crash" as const }),
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
  /** When the wait times out. Epoch milliseconds. */
  readonly until: number;
  outcome: { readonly value: JsonValue | undefined; readonly at: number } | null;
}

/** The waits of one run, its state, the values that were sent to it, and the values that its recorded waits received. */
class WaitingRun {
  readonly received: JsonValue[][] = [[], []];
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

  /** Changes the state at once and stores the change, as an owner does. */
  async commit(change: Omit<Commit, "number" | "at">): Promise<void> {
    const commit = { ...change, number: this.#commits++, at: this.clock.now() };
    this.#state.apply(commit, commit.at);
    await this.#store.journal.append(this.#lease, commit);
  }

  async crash(): Promise<void> {
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
    if (value !== undefined) this.received[which]?.push(value);
    const outcome = { kind: "ok", value: value === undefined ? {} : { value } } as const;
    const address = stepAt("", this.#steps++);
    const step = { taskId, address, kind: "wait", name: `signal ${which}`, digest: "", outcome } as const;
    await this.commit({ steps: [step] });
    if (value !== undefined) this.#waits.taken(taskId, step.name);
  }

  /** W1: if a value is left and a wait is open, exactly one wait has received a value. */
  checkServed(): void {
    for (const which of [0, 1]) {
      const remaining = (this.sent[which]?.length ?? 0) - (this.received[which]?.length ?? 0);
      const live = this.waiting.filter((each) => each.name === which && !hasTimedOut(each));
      const served = live.filter(({ outcome }) => outcome !== null).length;
      assert.equal(served, remaining > 0 && live.length > 0 ? 1 : 0);
    }
  }

  /**
   * Checks that no wait times out early. A wait lasts beyond its timeout only while another wait of its name has a
   * value, because that other wait may end and pass the value on.
   */
  checkTimes(): void {
    const now = this.clock.now();
    for (const { name: which, until, outcome } of this.waiting) {
      const holdsValue = (each: Waiting): boolean =>
        each.name === which && each.outcome !== null && !hasTimedOut(each);
      if (outcome === null)
        assert.ok(
          until > now || this.waiting.some(holdsValue),
          "a wait has not timed out although its time has passed",
        );
      else if (outcome.value === undefined)
        assert.ok(outcome.at >= until, "a wait has timed out before its time");
    }
  }
}

function hasTimedOut({ outcome }: Waiting): boolean {
  return outcome !== null && outcome.value === undefined;
}

/** W1, W2: every value goes to exactly one recorded wait, in the order of arrival, despite crashes, timeouts and abandoned waits. */
export const waitsModel: Model = (open) =>
  onStore(moves, open, async (store, sequence: readonly Move[]) => {
    const run = new WaitingRun(store, await ownRun(store));
    await run.commit({ tasks: [{ type: "create", task: rootTask() }] });
    for (const move of sequence) {
      if (move.type === "crash") await run.crash();
      else if (move.type === "advance") await run.clock.advance(move.ms);
      else if (move.type === "resolve") await run.resolve(move.name);
      else if (move.type === "wait") run.wait(move.name, move.ms);
      else if (move.type === "leave") run.leave(move.name);
      else await run.record(move.name);
      await Promise.resolve();
      run.checkTimes();
      run.checkServed();
    }
    // Waits after a crash receive all remaining values, and no others.
    await run.crash();
    for (const which of [0, 1]) {
      const remaining = (run.sent[which]?.length ?? 0) - (run.received[which]?.length ?? 0);
      for (let each = 0; each <= remaining; each++) {
        run.wait(which, 0);
        await Promise.resolve();
        await run.record(which);
      }
    }
    assert.deepEqual(run.received, run.sent);
  });

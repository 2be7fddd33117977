import {
  assertJson,
  describeValue,
  Fault,
  rootTaskId as root,
  isApprovalDecision,
  noUsage,
  parseTaskId,
  spendOfTopUp,
  type AgentId,
  type ApprovalDecision,
  type Clock,
  type Delta,
  type Event,
  type Guest,
  type IdSource,
  type JsonValue,
  type Mail,
  type MailBody,
  type Priority,
  type RunHandle,
  type RunId,
  type RunRecord,
  type RunResult,
  type SessionId,
  type RunSnapshot,
  type Store,
  type TailOptions,
  type TopUp,
  type UnknownPrice,
} from "../../kernel/index.ts";
import { forkRun } from "./fork-run.ts";
import { currentTask, type SlotYielder } from "../process/async-context.ts";
import { RunState } from "../journal/run-state.ts";
import { anonymousUser } from "../process/worker-context.ts";
import type { RuntimeLifetime } from "../process/runtime-lifetime.ts";
import { signalWait } from "../journal/wait-names.ts";

export interface HandleOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly record: RunRecord;
  /** Whoever observes a run in this process is through with what there is of it; nothing to wait for where nobody does. */
  readonly observed?: (runId: RunId) => Promise<void> | undefined;
  /** Of the runtime whose handle it is; for ever unless told. */
  readonly life?: RuntimeLifetime;
  /** B4: as the run's owner has it; `refuse` unless told. */
  readonly unknownPrice?: UnknownPrice;
  /** Who gives the orders; for the audit. */
  readonly by?: string | undefined;
}

const endings = ["task_end", "run_end"] as const;
/** Among so many of the last events of a run that has ended is nearly always the end of its root. */
const endingEvents = 16;

/** The events that say how a run ended, the last of each. */
interface Ending {
  end?: Event<"run_end">;
  task?: Event<"task_end">;
}

/** Orders by which a run that has ended may go on. */
function mayGoOn(mail: readonly Mail[]): boolean {
  return mail.some(({ body }) => body.type === "resume" || body.type === "top_up");
}

export class StoredRunHandle implements RunHandle {
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly agentId: AgentId;
  readonly #options: HandleOptions;

  constructor(options: HandleOptions) {
    this.#options = options;
    this.runId = options.record.runId;
    this.sessionId = options.record.sessionId;
    this.agentId = options.record.agentId;
  }

  as(by: string): RunHandle {
    if (by === "") throw new Fault("invalid_argument", "an order is given in a name that is not empty");
    return new StoredRunHandle({ ...this.#options, by });
  }

  events(options: TailOptions = {}): AsyncIterable<Event | Delta> {
    this.#options.life?.check();
    const { fromSeq = 0 } = options;
    if (!Number.isSafeInteger(fromSeq) || fromSeq < 0) {
      throw new Fault(
        "invalid_argument",
        `fromSeq is ${describeValue(fromSeq)}: it must be an integer from 0, the seq of the first event to read`,
      );
    }
    return slotFreeTail(this.#tail(options));
  }

  result(): Promise<RunResult<JsonValue>> {
    return currentTask()?.yieldSlotUnlessCancelled(this.#result()) ?? this.#result();
  }

  #tail(options: TailOptions): AsyncIterable<Event | Delta> {
    const { store, life } = this.#options;
    return store.events.tail(this.runId, life === undefined ? options : { ...options, life });
  }

  /** Reads along until the run ends, and on if it has orders to go on. */
  async #result(): Promise<RunResult<JsonValue>> {
    this.#options.life?.check();
    const ending: Ending = {};
    const last = this.#lastSeq();
    let from = Math.max(0, (last instanceof Promise ? await last : last) - endingEvents);
    let next = from;
    for (;;) {
      for await (const event of this.#tail({ fromSeq: next, types: endings })) {
        if ("seq" in event) next = event.seq + 1;
        if (event.type === "run_end") ending.end = event;
        if (event.type === "task_end" && event.taskId === root) ending.task = event;
      }
      // What completed has ended for good.
      const goesOn = ending.end?.data.status === "completed" ? false : this.#goesOn(next);
      if (goesOn instanceof Promise ? await goesOn : goesOn) continue;
      if (ending.task !== undefined || from === 0) break;
      // Its root ended long before: only then is a log read from its beginning.
      from = next = 0;
    }
    // By `call`: compiled for one runtime's function, this would be compiled again for the next one's.
    const observed = this.#options.observed?.call(undefined, this.runId);
    if (observed !== undefined) await observed;
    return this.#resultOf(ending);
  }

  #resultOf({ end, task }: Ending): RunResult<JsonValue> {
    const { usage = noUsage, costUsd = 0, turns = 0, status = "failed" } = end?.data ?? {};
    const { lost = { tokens: 0, costUsd: 0 } } = end?.data ?? {};
    const failure = task?.data.failure ?? null;
    return {
      output: task?.data.output ?? null,
      status,
      interruptionReason: task?.data.interruption?.reason ?? failure?.message ?? null,
      usage,
      costUsd,
      unreported: lost,
      turns,
      runId: this.runId,
      sessionId: this.sessionId,
      agentId: this.agentId,
      error: failure,
      metadata: task?.data.metadata ?? {},
    };
  }

  async snapshot(): Promise<RunSnapshot> {
    this.#options.life?.check();
    const state = new RunState(this.#options.unknownPrice ?? "refuse");
    for await (const commit of this.#options.store.journal.read(this.runId)) state.fold(commit);
    return { headcount: state.headcount, ledger: state.ledger };
  }

  cancel(reason = "cancelled"): Promise<void> {
    return this.#order({ type: "cancel", taskId: root, reason });
  }

  pause(): Promise<void> {
    return this.#order({ type: "pause" });
  }

  resume(): Promise<void> {
    return this.#order({ type: "resume" });
  }

  async topUp(add: Partial<TopUp>, taskId: string = root): Promise<void> {
    // Refused here: in the mailbox nobody could.
    spendOfTopUp(add);
    return this.#order({ type: "top_up", taskId: parseTaskId(taskId), add });
  }

  async reprioritize(taskId: string, priority: Priority): Promise<void> {
    return this.#order({ type: "reprioritize", taskId: parseTaskId(taskId), priority });
  }

  steer(input: JsonValue): Promise<void> {
    return this.#order({ type: "steer", input });
  }

  followUp(input: JsonValue): Promise<void> {
    return this.#order({ type: "follow_up", input });
  }

  async signal(name: string, value: JsonValue = null, taskId: string = root): Promise<void> {
    return this.#order({ type: "resolve", taskId: parseTaskId(taskId), wait: signalWait(name), value });
  }

  async approve(approvalId: string, decision: ApprovalDecision): Promise<void> {
    if (!isApprovalDecision(decision)) {
      throw new Fault(
        "invalid_argument",
        `the decision on ${approvalId} is ${describeValue(decision)}: it must be { decision: "approved" | "denied" | "skipped" }`,
      );
    }
    return this.#order({ type: "approval", approvalId, decision }, decision.by);
  }

  async fork({ at, runId }: { readonly at: number; readonly runId?: string }): Promise<RunHandle> {
    const { store, clock, ids, record, by = anonymousUser, life } = this.#options;
    life?.check();
    const given = runId === undefined ? {} : { runId };
    const fork = await forkRun({ store, clock, ids, origin: record, at, by, ...given });
    return new StoredRunHandle({ ...this.#options, record: fork });
  }

  /** Whether there were orders that may let an ended run go on; resolves when they are obeyed. `next`: after the last event that was seen. */
  #goesOn(next: number): boolean | Promise<boolean> {
    const { mailbox } = this.#options.store;
    const mail = mailbox.readNow?.(this.runId);
    return mail === undefined
      ? mailbox.read(this.runId).then((read) => this.#goesOnAfter(read, next))
      : this.#goesOnAfter(mail, next);
  }

  #goesOnAfter(mail: readonly Mail[], next: number): boolean | Promise<boolean> {
    if (mayGoOn(mail)) return this.#ordersObeyed().then(() => true);
    // One may have been obeyed before anyone looked for it.
    const last = this.#lastSeq();
    return last instanceof Promise ? last.then((seq) => seq >= next) : last >= next;
  }

  #lastSeq(): number | Promise<number> {
    const { events } = this.#options.store;
    return events.lastSeqNow?.(this.runId) ?? events.lastSeq(this.runId);
  }

  async #ordersObeyed(): Promise<void> {
    const { store, life } = this.#options;
    const { mailbox } = store;
    for (let isLeft = true; isLeft;) {
      const changed = Promise.withResolvers<void>();
      const forget = store.onChange(() => changed.resolve());
      const guest: Guest = { lifeEnded: () => changed.resolve() };
      life?.join(guest);
      // It may have changed before anyone listened.
      if (mayGoOn(await mailbox.read(this.runId)) && life?.fault === undefined) await changed.promise;
      forget();
      life?.leave(guest);
      life?.check();
      isLeft = mayGoOn(await mailbox.read(this.runId));
    }
  }

  async #order(body: MailBody, claimed = anonymousUser): Promise<void> {
    // The name the handle was made for counts before one that a caller writes into an order.
    const { store, clock, ids, by = claimed, life } = this.#options;
    life?.check();
    const told: unknown = body;
    assertJson(told, `the ${body.type.replace("_", " ")} of ${this.runId}`);
    await store.mailbox.put({ id: ids.next(), runId: this.runId, from: by, at: clock.now(), body });
  }
}

type EventStream = AsyncIterable<Event | Delta>;

/** A tail as the code of a task reads it, which has no slot while it waits; the tail itself for everyone else. */
function slotFreeTail(tail: EventStream): EventStream {
  const task = currentTask();
  return task === undefined ? tail : { [Symbol.asyncIterator]: () => readBy(task, tail) };
}

function readBy(task: SlotYielder, tail: EventStream): AsyncIterator<Event | Delta> {
  const events = tail[Symbol.asyncIterator]();
  return {
    next: () => task.yieldSlotWhile(events.next()),
    return: async () => (await events.return?.()) ?? { value: undefined, done: true },
  };
}

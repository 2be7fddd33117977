import { isDeepStrictEqual } from "node:util";
import type { Commit, Event, Lease, PlacedMail, Rest, RunId, TaskId } from "../kernel/index.ts";
import type { DatabaseAnswer, DatabaseRequest } from "../runtime/simulation.ts";
import type { OutsideCall } from "../testing/index.ts";
import type { SeenCommit } from "./simulate.ts";

/** What the model knows of a run. All of it comes from requests, answers and calls. */
interface ModelRun {
  readonly runId: RunId;
  readonly commits: Commit[];
  readonly events: Event[];
  /** The lease by which a process owns the run. `undefined`: none does. */
  owner: (Lease & { readonly process: string }) | undefined;
  /** The highest epoch of a claim so far. */
  epoch: number;
  /** When each valid record of a step was stored, by task and address. */
  readonly records: Map<TaskId, Map<string, number>>;
  /** The highest place of a mail that each process was shown. */
  readonly shown: Map<string, number>;
  mailThrough: number;
  /** The calls that were answered, by the idempotency key, with whether their worker has released the run since. */
  readonly answered: Map<string, { readonly process: string; isOver: boolean }>;
  /** When a commit ended the run. `undefined`: it has not ended. */
  endedAtMs: number | undefined;
}

/** Time that a call takes at most to arrive at the outside, in milliseconds. */
const onItsWayMs = 10;

/**
 * What every log must look like, computed from nothing but the requests that arrive at the database, its answers, and the calls that
 * arrive at the outside. It shares no code with the runtime and its stores.
 *
 * - L1: each claim of a run has a higher epoch than all before.
 * - J3: only the owner by the last claim writes, until it releases the run.
 * - J1, E1: no run is created twice, and a writer never gets back the commit of another one. Commits and events are numbered without
 *   gaps. A step has one outcome, until a commit voids it. At the end the store holds exactly the events that it has accepted.
 * - P3: a commit consumes only mail that its writer was shown, and no mail twice.
 * - J1: a step that was answered is not performed again after its worker has released the run as suspended, if no attempt failed.
 * - J3, C1: no call of a step arrives outside after the record of the step, or after the end of its run.
 */
export class LogModel {
  readonly #runs = new Map<RunId, ModelRun>();
  /** Runs that a commit has submitted. The store may have steered another run instead. */
  readonly #submitted = new Map<RunId, Commit>();
  readonly #violate: (text: string) => void;
  /** Whether ended runs were deleted. */
  #mayCollect = false;

  constructor(violate: (text: string) => void) {
    this.#violate = violate;
  }

  /** Notes a request that the database has performed for the first time. Returns the commit that it has stored. */
  note(request: DatabaseRequest, answer: DatabaseAnswer, atMs: number): SeenCommit | undefined {
    if (!watched.has(request.method)) return undefined;
    const { value, failure } = JSON.parse(answer.body) as { value?: unknown; failure?: unknown };
    if (failure !== undefined) return undefined;
    const given = (JSON.parse(request.body) as readonly (readonly never[])[]).map(([each]) => each as never);
    const { client, method } = request;
    const [subject] = given as readonly unknown[];
    switch (method) {
      case "journal.create":
        return this.#create(given as never, value as never, client, atMs);
      case "journal.append":
        return this.#append(given as never, value as Commit | undefined, client, atMs);
      case "journal.delete":
        this.#runs.delete(subject as RunId);
        return undefined;
      case "journal.collect":
        this.#mayCollect = true;
        return undefined;
      case "leases.claim":
        for (const lease of value as readonly Lease[]) this.#claim(lease, client, atMs);
        return undefined;
      case "leases.seize":
        if (value !== undefined) this.#claim(value as Lease, client, atMs);
        return undefined;
      case "leases.release":
        this.#release(subject as Lease, given[1] as unknown as Rest, client);
        return undefined;
      default:
        this.#show(subject as RunId, value as readonly PlacedMail[], client);
        return undefined;
    }
  }

  /** Notes a call that has arrived at the outside. */
  call({ name, key, process, atMs }: OutsideCall): void {
    const [runId, taskId, ...rest] = key?.split("/") ?? none;
    const run = this.#runs.get(runId as RunId);
    if (run === undefined || rest.length === 0) return;
    const { endedAtMs } = run;
    if (endedAtMs !== undefined && atMs > endedAtMs + onItsWayMs)
      this.#violate(
        `C1: ${process} calls ${name} (${key}) ${lateBy(atMs, endedAtMs)} after the end of its run`,
      );
    if (key !== null && run.answered.get(key)?.isOver === true)
      this.#violate(
        `J1: ${process} calls ${name} (${key}) again, although it was answered before the run was suspended`,
      );
    const recordedAt = run.records.get(taskId as TaskId)?.get(rest.join("/"));
    if (recordedAt !== undefined && atMs > recordedAt + onItsWayMs)
      this.#violate(`J3: ${process} calls ${name} (${key}) ${lateBy(atMs, recordedAt)} after its record`);
  }

  /** Notes that a process has the answer of a call. */
  answer({ key, process }: OutsideCall): void {
    if (key !== null)
      this.#runs.get(key.split("/", 1)[0] as RunId)?.answered.set(key, { process, isOver: false });
  }

  /** Compares the runs that the store holds at the end with those that it has accepted. */
  compare(found: readonly { readonly runId: RunId; readonly events: readonly Event[] }[]): void {
    const left = new Set(this.#runs.keys());
    for (const { runId, events } of found) {
      left.delete(runId);
      const run = this.#runs.get(runId) ?? this.#begun(runId, 0);
      if (run === undefined) this.#violate(`J1: the store holds ${runId}, which was never created`);
      else this.#compareEvents(run, events);
    }
    for (const runId of left)
      if (!this.#mayCollect || this.#runs.get(runId)?.endedAtMs === undefined)
        this.#violate(`J1: the store has lost ${runId}`);
  }

  #compareEvents({ runId, events: accepted }: ModelRun, events: readonly Event[]): void {
    if (events.length !== accepted.length)
      this.#violate(
        `E1: the store holds ${events.length} events of ${runId}, and accepted ${accepted.length}`,
      );
    for (const [index, event] of events.entries())
      if (event.erased !== true && !isDeepStrictEqual(event, accepted[index])) {
        this.#violate(`E1: event ${index} of ${runId} is not the one that the store accepted`);
        return;
      }
  }

  #create(
    [record, first]: readonly [{ readonly runId: RunId }, Commit],
    { kind }: { readonly kind: string },
    process: string,
    atMs: number,
  ): SeenCommit | undefined {
    if (kind !== "created") return undefined;
    const { runId } = record;
    const former = this.#runs.get(runId);
    if (former !== undefined && !(this.#mayCollect && former.endedAtMs !== undefined))
      this.#violate(`J1: ${process} creates ${runId} a second time`);
    this.#begin(runId, first, atMs);
    return { runId, commit: first, atMs, process, epoch: null };
  }

  #begin(runId: RunId, first: Commit, atMs: number): ModelRun {
    const run: ModelRun = {
      runId,
      commits: [],
      events: [],
      owner: undefined,
      epoch: 0,
      records: new Map(),
      shown: new Map(),
      mailThrough: -1,
      answered: new Map(),
      endedAtMs: undefined,
    };
    this.#runs.set(runId, run);
    this.#add(run, first, atMs);
    return run;
  }

  /** A run that a commit has submitted, which the store has created, as is seen now. */
  #begun(runId: RunId, atMs: number): ModelRun | undefined {
    const first = this.#submitted.get(runId);
    return first && this.#begin(runId, first, atMs);
  }

  #append(
    [lease, commit, submissions = none]: readonly [
      Lease,
      Commit,
      readonly { readonly run: { readonly runId: RunId }; readonly first: Commit }[] | undefined,
    ],
    known: Commit | undefined,
    process: string,
    atMs: number,
  ): SeenCommit | undefined {
    const { runId, epoch } = lease;
    const run = this.#runs.get(runId);
    const what = `commit ${commit.number} of ${runId} by ${process} at epoch ${epoch}`;
    if (run === undefined) {
      this.#violate(`J1: the store accepts ${what}, and the run was never created`);
      return undefined;
    }
    const { owner } = run;
    if (owner?.epoch !== epoch || owner.workerId !== lease.workerId || owner.process !== process)
      this.#violate(`J3: the store accepts ${what}, and the owner is ${nameOf(owner)}`);
    if (known !== undefined) {
      // The writer has got no answer to its first attempt.
      if (!isDeepStrictEqual(commit, run.commits[commit.number]))
        this.#violate(`J1: ${what} is answered with another commit`);
      return undefined;
    }
    const { mailThrough } = commit;
    const shown = run.shown.get(process) ?? -1;
    if (mailThrough !== undefined && mailThrough > shown)
      this.#violate(`P3: ${what} consumes mail ${mailThrough}, and its writer has read up to ${shown}`);
    this.#add(run, commit, atMs);
    for (const { run: record, first } of submissions) this.#submitted.set(record.runId, first);
    return { runId, commit, atMs, process, epoch };
  }

  #add(run: ModelRun, commit: Commit, atMs: number): void {
    const { runId, commits, events } = run;
    if (commit.number !== commits.length)
      this.#violate(`J1: the store accepts commit ${commit.number} of ${runId} as number ${commits.length}`);
    commits.push(commit);
    for (const { taskId, address } of commit.voids ?? none) run.records.get(taskId)?.delete(address);
    for (const change of commit.tasks ?? none)
      if (change.type === "continue") run.records.delete(change.taskId);
      else if (change.type === "reopen") run.endedAtMs = undefined;
    for (const { taskId, address } of commit.steps ?? none) {
      const records = run.records.get(taskId) ?? new Map<string, number>();
      run.records.set(taskId, records);
      if (records.has(address))
        this.#violate(`J1: step ${address} of ${taskId} of ${runId} is recorded twice`);
      else records.set(address, atMs);
    }
    for (const event of commit.events ?? none) {
      if (event.seq !== events.length || event.runId !== runId)
        this.#violate(`E1: event ${event.seq} of ${event.runId} is event ${events.length} of ${runId}`);
      events.push(event);
      // An attempt whose call was answered may fail afterwards, and make the call again.
      if (retries.has(event.type)) run.answered.clear();
      if (event.type === "run_end") run.endedAtMs = atMs;
      // What a fork shares with its origin may contain the end of the origin.
      else if (event.type === "run_fork") run.endedAtMs = undefined;
    }
    if (commit.mailThrough !== undefined) {
      if (commit.mailThrough <= run.mailThrough)
        this.#violate(`P3: commit ${commit.number} of ${runId} consumes mail ${commit.mailThrough} again`);
      run.mailThrough = commit.mailThrough;
    }
  }

  #claim(lease: Lease, process: string, atMs: number): void {
    const { runId, epoch } = lease;
    const run = this.#runs.get(runId) ?? this.#begun(runId, atMs);
    if (run === undefined) {
      this.#violate(`J1: ${process} claims ${runId}, which was never created`);
      return;
    }
    if (epoch <= run.epoch)
      this.#violate(`L1: ${process} claims ${runId} at epoch ${epoch}, and epoch ${run.epoch} was before`);
    run.epoch = Math.max(run.epoch, epoch);
    run.owner = { ...lease, process };
  }

  #release({ runId, epoch }: Lease, { kind }: Rest, process: string): void {
    const run = this.#runs.get(runId);
    if (run === undefined) return;
    if (run.owner?.epoch !== epoch)
      this.#violate(
        `L4: ${process} releases ${runId} at epoch ${epoch}, and the owner is ${nameOf(run.owner)}`,
      );
    run.owner = undefined;
    // An owner whose write failed releases the run as ready.
    if (kind !== "suspended" && kind !== "ended") return;
    for (const call of run.answered.values()) if (call.process === process) call.isOver = true;
  }

  #show(runId: RunId, mail: readonly PlacedMail[], process: string): void {
    const run = this.#runs.get(runId);
    const last = mail.at(-1);
    if (run === undefined || last === undefined) return;
    run.shown.set(process, Math.max(run.shown.get(process) ?? -1, last.place));
    const [first] = mail;
    if (first !== undefined && first.place !== run.mailThrough + 1)
      this.#violate(`P3: ${runId} has consumed mail ${run.mailThrough}, and the next one is ${first.place}`);
  }
}

/** The requests that the model reads. */
const watched: ReadonlySet<string> = new Set([
  "journal.create",
  "journal.append",
  "journal.delete",
  "journal.collect",
  "leases.claim",
  "leases.seize",
  "leases.release",
  "mailbox.read",
]);

/** Events of attempts that have failed. */
const retries: ReadonlySet<string> = new Set(["step_retry", "task_retry", "attempt_start"]);

function nameOf(owner: ModelRun["owner"]): string {
  return owner === undefined ? "no process" : `${owner.process} at epoch ${owner.epoch}`;
}

function lateBy(atMs: number, afterMs: number): string {
  return `${Math.round(atMs - afterMs)} ms`;
}

const none: readonly never[] = [];

import {
  joinStarts,
  withoutInputs,
  type RunFlow,
  type RunId,
  type RunRecord,
} from "../../../kernel/index.ts";
import { gatesOf, slotOf, type Gate } from "../flow-gates.ts";
import { RunState, type RunKey } from "../codec/stored-run.ts";
import { isChanged, isInQueue, runKeyColumns } from "./run-row.ts";
import type { OwnedRun } from "./tables.ts";
import { all, announce, get, lock, run, type Work } from "./work.ts";

/** Maximum number of runs whose limits one claim checks. */
const mostDue = 256;

/** Wake-up time of a queued run whose limits the next claim must check. */
export const atOnce = 0;

/**
 * SQL for the wake-up time of a run whose owner was lost. The limits of a queued run are checked again, also if no
 * worker claims it.
 */
export const checkTime = `CASE WHEN gate IS NOT NULL THEN ${atOnce} END`;

type QueuedRun = Pick<RunKey, "id" | "runId" | "tenantId" | "flowText"> & { readonly state: number };

/** A queued run with the time at which it entered the queue, in epoch milliseconds. */
type EnteredRun = QueuedRun & { readonly dueAt: number };

interface DueRun {
  readonly id: number;
  readonly runId: RunId;
  readonly gate: string;
}

const hasNoOwner = `state IN (${RunState.READY}, ${RunState.QUEUED})`;

const setFlow = "UPDATE {runs} SET flow = $2, gate = $3 WHERE id = $1";
const setFlowOwned = "UPDATE {runs} SET flow = $2, gate = $3 WHERE id = $1 AND epoch = $4 AND owner = $5";
const dueRuns = `SELECT id, run_id AS "runId", gate FROM {runs} INDEXED BY runs_gated
  WHERE wake_at <= $1 AND gate IS NOT NULL AND wake_at IS NOT NULL ORDER BY wake_at LIMIT ${mostDue}`;
const dueRun = `SELECT id, run_id AS "runId", gate FROM {runs} WHERE run_id = ANY($2::text[]) AND wake_at <= $1 AND gate IS NOT NULL`;
/** A run with mail stays ready. */
const enterQueue = `UPDATE {runs} SET state = CASE WHEN state = ${RunState.READY} THEN state ELSE ${RunState.QUEUED} END,
    wake_at = NULL, ${isChanged}
  WHERE id = $1 AND gate = $2 AND wake_at <= $3`;
const startsLater = "coalesce(start_at > created_at, false)";
const firstInQueue = `SELECT ${runKeyColumns}, state, priority, CASE WHEN ${startsLater} THEN start_at END AS "dueAt"
  FROM {runs} INDEXED BY runs_at_gate
  WHERE gate = $1 AND ${isInQueue} ORDER BY priority DESC, id LIMIT 1`;
/** SQL for the first run of a priority among those that entered the queue when they were created. */
const firstAtOnce = `SELECT ${runKeyColumns}, state, created_at AS "dueAt" FROM {runs} INDEXED BY runs_at_gate
  WHERE gate = $1 AND ${isInQueue} AND priority = $2 AND NOT ${startsLater} ORDER BY id LIMIT 1`;
/**
 * SQL for the first run of a priority that entered the queue later, among those that were created before a given
 * run.
 */
const firstLater = `SELECT ${runKeyColumns}, state, start_at AS "dueAt" FROM {runs} INDEXED BY runs_at_gate
  WHERE gate = $1 AND ${isInQueue} AND priority = $2 AND id < $3::bigint AND ${startsLater}
  ORDER BY start_at, id LIMIT 1`;
const lastSlot = `SELECT 1 FROM {runs} INDEXED BY runs_in_slot WHERE slot = $1 AND slot IS NOT NULL LIMIT 1 OFFSET $2::bigint`;
const earlierStart = `SELECT admitted_at AS at FROM {runs} INDEXED BY runs_of_rate
  WHERE rate = $1 AND rate IS NOT NULL ORDER BY admitted_at DESC LIMIT 1 OFFSET $2::bigint`;

const isFirst = `WHERE id = $1 AND gate = $2 AND ${hasNoOwner}`;
const toNextGate = `UPDATE {runs} SET slot = $2, gate = $3, wake_at = ${atOnce}, ${isChanged} ${isFirst}`;
const intoSlot = `UPDATE {runs} SET slot = $2, gate = NULL, state = ${RunState.READY}, ready_at = $3, wake_at = NULL, ${isChanged} ${isFirst}`;
const intoRate = `UPDATE {runs} SET rate = $2, admitted_at = $4, gate = NULL, state = ${RunState.READY}, ready_at = $3, wake_at = NULL,
  ${isChanged} ${isFirst}`;
const intoReady = `UPDATE {runs} SET gate = NULL, state = ${RunState.READY}, ready_at = $3, wake_at = NULL, ${isChanged} ${isFirst}`;
const toOtherGate = `UPDATE {runs} SET gate = $3, wake_at = ${atOnce}, ${isChanged} ${isFirst}`;
const lastInQueue = `SELECT ${runKeyColumns} FROM {runs} INDEXED BY runs_at_gate
  WHERE gate = $1 AND ${isInQueue} AND state = ${RunState.QUEUED} ORDER BY priority, id DESC LIMIT 1`;
const setCollected = `UPDATE {runs} SET flow = $3, wake_at = $4, ${isChanged} ${isFirst} AND state = ${RunState.QUEUED}`;
const eraseInputs = "UPDATE {runs} SET flow = $2 WHERE id = $1";
const setTimer = `UPDATE {runs} SET wake_at = $3, ${isChanged} ${isFirst}`;

const leaveSlot = "UPDATE {runs} SET slot = NULL, gate = NULL WHERE id = $1";
const takeSlot = "UPDATE {runs} SET slot = $2, gate = NULL WHERE id = $1";
/**
 * SQL that wakes the first run of a queue. If the run has an owner, the release of this owner makes a claim check
 * the limits.
 */
const wakeFirst = `UPDATE {runs} SET wake_at = ${atOnce} WHERE id = (SELECT id FROM {runs} INDEXED BY runs_at_gate
    WHERE gate = $1 AND ${isInQueue} ORDER BY priority DESC, id LIMIT 1) AND ${hasNoOwner}
  RETURNING run_id AS "runId"`;

type LimitedRun = Pick<RunKey, "id" | "tenantId" | "flowText">;

/** The gates of a stored run. */
function gatesOfRow({ tenantId, flowText }: Pick<RunKey, "tenantId" | "flowText">): readonly Gate[] {
  return flowText == null ? [] : gatesOf({ tenantId, flow: JSON.parse(flowText) as RunFlow });
}

/**
 * L17: returns the locks of a transaction in which the run ends or is deleted. Because of these locks, the
 * transaction and a claim see each other's changes of places. Every transaction must take them before it changes
 * the row of a run, as a claim does.
 */
export function gateLocks(owner: Pick<RunKey, "tenantId" | "flowText">): readonly string[] {
  const slot = slotOf(gatesOfRow(owner));
  return slot === undefined ? [] : [lockOf(slot.id)];
}

function lockOf(gate: string): string {
  return `gate ${gate}`;
}

/**
 * L17: stores the limits of a new run. Its gate is the limit that it must pass first: concurrency, rate, object or
 * batch.
 */
export function* storeFlow(id: number, flow: RunFlow, tenantId: string | null): Work<void> {
  yield* run(setFlow, id, JSON.stringify(flow), gatesOf({ tenantId, flow })[0]?.id ?? null);
}

/** L18: stores the limits that the owner of a run sets with its release. Does nothing if the lease is lost. */
export function* storeOwnedFlow(
  { id, tenantId, epoch, workerId }: Pick<OwnedRun, "id" | "tenantId" | "epoch" | "workerId">,
  flow: RunFlow,
): Work<void> {
  const [first] = gatesOf({ tenantId, flow });
  yield* run(setFlowOwned, id, JSON.stringify(flow), first?.id ?? null, epoch, workerId);
}

/**
 * L17: checks the limits of the runs that are due, or of some of them, and makes the admitted runs ready. Call it
 * in a claim, before the claim changes the row of any run. `tick` is `SqlTables.tick`.
 */
export function* admitDueRuns(now: number, tick: () => number, only?: readonly RunId[]): Work<void> {
  const due = yield* only === undefined ? all<DueRun>(dueRuns, now) : all<DueRun>(dueRun, now, only);
  const gates = [...new Set(due.map(({ gate }) => gate))];
  yield* lock(...gates.map(lockOf));
  for (const { id, gate } of due) yield* run(enterQueue, id, gate, now);
  for (const gate of gates) yield* admit(gate, now, tick);
  const last = due.length < mostDue ? undefined : due.at(-1);
  // More runs may be due. The next claim checks them.
  if (last !== undefined) yield* announce({ kind: "new", runId: last.runId, startAt: null });
}

/** Admits runs of the queue of a limit (gate) while the limit allows it. */
function* admit(gate: string, now: number, tick: () => number): Work<void> {
  for (;;) {
    const first = yield* nextOf(gate);
    // No run overtakes one whose owner reads its mail. The release of that run lets a claim check the limits again.
    if (first === undefined || first.state === RunState.OWNED) return;
    const gates = gatesOfRow(first);
    const passed = gates.find(({ id }) => id === gate);
    if (passed === undefined || !(yield* passes(first, passed, now))) return;
    const next = gates[gates.indexOf(passed) + 1];
    const { id, runId } = first;
    // A row that another worker has taken since the query is not changed. A later query finds it with its owner.
    if (passed.dueAt !== undefined)
      yield* next === undefined ? run(intoReady, id, gate, tick()) : run(toOtherGate, id, gate, next.id);
    else if (next !== undefined) yield* run(toNextGate, id, gate, next.id);
    else if (passed.perMs === null) yield* run(intoSlot, id, gate, tick());
    else yield* run(intoRate, id, gate, tick(), now);
    yield* announce({ kind: "new", runId, startAt: null });
  }
}

/**
 * L17: returns the next run of a queue. A run with a later start time may be older than runs that entered the queue
 * before it. Costs O(such runs at the head of the queue), and one statement if there are none.
 */
function* nextOf(gate: string): Work<QueuedRun | undefined> {
  const head = yield* get<QueuedRun & { readonly priority: number; readonly dueAt: number | null }>(
    firstInQueue,
    gate,
  );
  if (head === undefined || head.dueAt === null) return head;
  const other = yield* get<EnteredRun>(firstAtOnce, gate, head.priority);
  // A run that was created after this one is due after it as well.
  const before = other?.id ?? Number.MAX_SAFE_INTEGER;
  const later = yield* get<EnteredRun>(firstLater, gate, head.priority, before);
  if (later === undefined || other === undefined) return later ?? other;
  return other.dueAt < later.dueAt ? other : later;
}

/**
 * Whether a limit (gate) admits the first run of its queue. If only time is missing, sets the wake-up time of the
 * run.
 */
function* passes({ id, runId }: QueuedRun, gate: Gate, now: number): Work<boolean> {
  if (gate.dueAt !== undefined && gate.dueAt <= now) return true;
  if (gate.perMs === null && gate.dueAt === undefined)
    return (yield* get(lastSlot, gate.id, gate.limit - 1)) === undefined;
  const freeAt = gate.dueAt ?? (yield* rateFreeAt(gate, now));
  if (freeAt <= now) return true;
  yield* run(setTimer, id, gate.id, freeAt);
  yield* announce({ kind: "new", runId, startAt: freeAt });
  return false;
}

/** Returns the time at which a rate limit admits another run. */
function* rateFreeAt({ id, limit, perMs }: Gate, now: number): Work<number> {
  const earlier = yield* get<{ readonly at: number }>(earlierStart, id, limit - 1);
  return earlier === undefined ? now : earlier.at + (perMs ?? 0);
}

/**
 * L20: adds the start of a new run to the queued run that collects the starts of its key. Returns that run, or
 * `undefined` if there is none.
 */
export function* joinCollected({ tenantId, flow, createdAt }: RunRecord): Work<RunKey | undefined> {
  const [gate] = gatesOf({ tenantId, ...(flow && { flow }) });
  if (flow?.collect === undefined || gate === undefined) return undefined;
  const last = yield* get<RunKey>(lastInQueue, gate.id);
  const found = last?.flowText == null ? undefined : (JSON.parse(last.flowText) as RunFlow);
  const collect = found?.collect && joinStarts(found.collect, flow.collect, createdAt);
  if (last === undefined || collect === undefined) return undefined;
  const text = JSON.stringify({ ...found, collect });
  // A run that has got mail meanwhile takes no start.
  if ((yield* run(setCollected, last.id, gate.id, text, collect.dueAt)) === 0) return undefined;
  yield* announce({
    kind: "new",
    runId: last.runId,
    startAt: collect.dueAt <= createdAt ? null : collect.dueAt,
  });
  return last;
}

/** L20: returns the lock of a transaction that creates a run which collects starts. */
export function collectLocks({ tenantId, flow }: RunRecord): readonly string[] {
  const [gate] = gatesOf({ tenantId, ...(flow && { flow }) });
  return gate?.dueAt === undefined ? [] : [lockOf(gate.id)];
}

/**
 * L17: frees the place of a run that has ended or was deleted, and makes the next claim check the limits of the
 * next run.
 */
export function* leaveGates(owner: LimitedRun): Work<void> {
  const gates = gatesOfRow(owner);
  if (gates.length === 0) return;
  yield* run(leaveSlot, owner.id);
  // A run that never started may have been the one that wakes the queue of any of its gates.
  for (const { id } of gates) {
    const woken = yield* get<{ readonly runId: RunId }>(wakeFirst, id);
    if (woken !== undefined) yield* announce({ kind: "new", runId: woken.runId, startAt: null });
  }
}

/** L17: gives a run that is reopened after its end its place again. */
export function* reenterGates(owner: LimitedRun): Work<void> {
  const slot = slotOf(gatesOfRow(owner));
  if (slot !== undefined) yield* run(takeSlot, owner.id, slot.id);
}

/** L20: erases the inputs that a run has collected. */
export function* eraseCollected({ id, flowText }: LimitedRun): Work<void> {
  const flow = flowText == null ? undefined : (JSON.parse(flowText) as RunFlow);
  if (flow?.collect !== undefined) yield* run(eraseInputs, id, JSON.stringify(withoutInputs(flow)));
}

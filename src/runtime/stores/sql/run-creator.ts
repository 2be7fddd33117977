import {
  chainStart,
  isInScope,
  runKinds,
  sameCaller,
  startsLater,
  type ClaimOptions,
  type Commit,
  type Creation,
  type JsonObject,
  type RunId,
  type RunRecord,
  type RunSummary,
  type SingleFlight,
  type Submission,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { positionAfter, type Draft, type Position } from "../codec/commit-draft.ts";
import { RunState, tenantText, type RunKey } from "../codec/stored-run.ts";
import type { CommitEffects } from "./commit-effects.ts";
import { gatesOf } from "../flow-gates.ts";
import { atOnce, collectLocks, joinCollected, storeFlow } from "./flow-queue.ts";
import { agentsIn, areFree, inboxLock, takeLocks } from "./inbox.ts";
import { findSubmitted, hasMail, noteSubmitted, type SqlMailbox } from "./mailbox.ts";
import type { RunList } from "./run-list.ts";
import { insertMetadata } from "./run-metadata.ts";
import { sessionLock } from "./session-rows.ts";
import { isAvailable } from "./sessions.ts";
import type { OwnedRun, SqlTables } from "./tables.ts";
import { announce, get, lock, tryLock, type Work } from "./work.ts";
import { changeNumber } from "./run-row.ts";

/** The outcome of creating a run. */
export interface CreatedRun<Owned extends OwnedRun> {
  readonly creation: Creation;
  /** The run, if it was claimed in the same transaction. */
  readonly owned?: Owned;
}

/** A run that was created and claimed in one transaction. */
interface ClaimedRun extends OwnedRun {
  readonly position: Position;
}

export interface RunCreatorOptions<Owned extends OwnedRun> {
  readonly tables: SqlTables<Owned>;
  readonly chain: Chain;
  readonly list: RunList;
  readonly effects: CommitEffects;
  readonly mailbox: SqlMailbox;
  readonly feeds: { begin(run: Owned, first: Commit): void };
  /** Id of this store, for the column that the dialect names in `holderColumn`. */
  readonly holder?: number;
  /** L5: whether a claim would select this new run. */
  readonly wouldClaim: (record: RunRecord, claim: ClaimOptions) => Work<boolean>;
  /** Called in the transaction after the first commit was stored. `id` is the id of the commit's row. */
  readonly added: (run: RunKey, id: number, draft: Draft) => Work<void>;
  /** Returns what the store knows about a run that it has claimed. `record` has the stored metadata. */
  readonly own: (run: ClaimedRun, record: RunRecord, draft: Draft) => Owned;
}

const insertCommit = `INSERT INTO {commits} (run, number, at, next_event, link, body, refs)
  VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`;

/** Creates runs for the journal, inside its transactions, which have the locks that `locksOf` returns. */
export class RunCreator<Owned extends OwnedRun> {
  readonly #options: RunCreatorOptions<Owned>;
  readonly #insertRun: string;

  constructor(options: RunCreatorOptions<Owned>) {
    this.#options = options;
    const { holderColumn } = options.tables.dialect;
    const [column, place] = holderColumn === undefined ? ["", ""] : [`, ${holderColumn}`, ", $18"];
    this.#insertRun = `INSERT INTO {runs} (run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at,
        ready_at, mail_count, epoch, state, owner, kind, title, start_at, wake_at, recoveries_in_all, change${column})
      VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, $13, $14, $15, $16, $17, ${changeNumber}${place})
      ON CONFLICT (run_id) DO NOTHING RETURNING id`;
  }

  /**
   * S5: returns the locks for the creation of a run. Because of the lock of the session, only one transaction at a
   * time decides whether a run starts there.
   */
  locksOf(record: RunRecord, draft: Draft): readonly string[] {
    const { sessionId } = record;
    const { inbox = [] } = draft.commit;
    const { effects } = this.#options;
    return [
      sessionLock(sessionId),
      ...agentsIn(inbox).map(inboxLock),
      ...effects.locksOf(draft, sessionId),
      ...collectLocks(record),
    ];
  }

  /** Creates a run that is not submitted together with a commit. */
  *createAlone(
    record: RunRecord,
    draft: Draft,
    flight: SingleFlight | undefined,
    claim: ClaimOptions | undefined,
  ): Work<CreatedRun<Owned>> {
    if (!(yield* tryLock(...takeLocks(draft.commit.inbox ?? [])))) return { creation: { kind: "taken" } };
    yield* lock(...this.locksOf(record, draft));
    return yield* this.#create(record, draft, flight, claim);
  }

  /** Creates a run that is submitted together with a commit. */
  *createSubmitted({ run, flight, isAlone }: Submission, draft: Draft): Work<CreatedRun<Owned>> {
    const unfinished = isAlone === true ? yield* this.#options.list.findUnfinished(run) : undefined;
    if (unfinished !== undefined) return { creation: { kind: "busy", run: unfinished } };
    return yield* this.#create(run, draft, flight);
  }

  /**
   * S5: creates the run. If its agent has an unfinished run in the session and `flight` says so, that run gets the
   * input instead.
   */
  *#create(
    record: RunRecord,
    draft: Draft,
    flight: SingleFlight | undefined,
    claim?: ClaimOptions,
  ): Work<CreatedRun<Owned>> {
    if ((yield* this.#options.tables.find(record.runId)) !== undefined)
      return { creation: { kind: "exists" } };
    const joined = record.flow?.collect === undefined ? undefined : yield* this.#collect(record);
    if (joined !== undefined) return { creation: { kind: "steered", runId: joined } };
    const instead = yield* flight === undefined ? this.#refusal(record) : this.#steer(record, flight);
    if (instead !== undefined) return { creation: instead };
    const { inbox } = draft.commit;
    if (inbox !== undefined && !(yield* areFree(inbox))) return { creation: { kind: "taken" } };
    const owned = yield* this.#insert(record, draft, claim);
    if (owned === "exists") return { creation: { kind: "exists" } };
    if (owned === undefined) {
      const startAt = startsLater(record) ? record.startAt : (record.flow?.collect?.dueAt ?? null);
      yield* announce({ kind: "new", runId: record.runId, startAt });
      return { creation: { kind: "created" } };
    }
    const { runId, epoch, workerId } = owned;
    return { creation: { kind: "created", lease: { runId, epoch, workerId } }, owned };
  }

  /**
   * L20: returns the run that has collected the start of this one, now or in an earlier call. `undefined` if there
   * is none.
   */
  *#collect(record: RunRecord): Work<RunId | undefined> {
    const submission = `submit ${record.runId}`;
    const known = yield* findSubmitted(submission);
    if (known !== undefined) return known;
    const receiver = yield* joinCollected(record);
    if (receiver !== undefined) yield* noteSubmitted(receiver, submission);
    return receiver?.runId;
  }

  /** S5: returns a refusal for a compaction in a session that is not idle. */
  *#refusal({ kind, sessionId }: RunRecord): Work<Creation | undefined> {
    const run = kind === "compaction" ? yield* this.#options.list.findUnderWay(sessionId) : undefined;
    return run === undefined ? undefined : { kind: "busy", run };
  }

  *#steer(record: RunRecord, { steering, always, scope }: SingleFlight): Work<Creation | undefined> {
    const { mailbox, list } = this.#options;
    if (scope !== undefined && !(yield* isAvailable(record.sessionId, scope))) return { kind: "foreign" };
    const steered = yield* findSubmitted(steering.id);
    if (steered !== undefined)
      return (yield* this.#isInScope(steered, scope))
        ? { kind: "steered", runId: steered }
        : { kind: "foreign" };
    const refusal = yield* this.#refusal(record);
    if (refusal !== undefined) return refusal;
    const run = yield* list.findUnfinished(record);
    if (run === undefined) return undefined;
    // A run that keeps no history has no session.
    if (!isInScope(run, scope)) return { kind: "foreign" };
    const { runId } = run;
    const isWoken = run.status === "pending" && (yield* hasMail(runId));
    if (!takesSteering(run, record, { always, isWoken })) return { kind: "busy", run };
    yield* mailbox.putNow({ ...steering, runId });
    return { kind: "steered", runId };
  }

  *#isInScope(runId: RunId, scope: TenantScope | undefined): Work<boolean> {
    return scope === undefined || isInScope(yield* this.#options.tables.run(runId), scope);
  }

  *#insert(
    record: RunRecord,
    draft: Draft,
    claim: ClaimOptions | undefined,
  ): Work<Owned | "exists" | undefined> {
    const { tables, chain, list, effects, holder } = this.#options;
    const start: Position = { number: 0, seq: 0, link: chainStart(record) };
    const precondition = yield* effects.validate(draft, start);
    const { runId, agentId, sessionId, tenantId, userId, priority, agentVersion, createdAt } = record;
    const isHeld = record.kind !== "compaction" && (yield* list.isCompacting(sessionId));
    const isScheduled = startsLater(record) && !isHeld;
    const hasGates = gatesOf(record).length > 0;
    const isQueued = hasGates && !isHeld && !isScheduled;
    const isClaimed =
      !isHeld && !hasGates && claim !== undefined && (yield* this.#options.wouldClaim(record, claim));
    const workerId = isClaimed ? claim.workerId : null;
    const row = yield* get<{ readonly id: number }>(
      this.#insertRun,
      runId,
      agentId,
      sessionId,
      tenantText(tenantId),
      userId,
      priority,
      agentVersion,
      createdAt,
      tables.tick(),
      isClaimed ? 1 : 0,
      firstState({ isClaimed, isHeld, isScheduled, isQueued }),
      workerId,
      runKinds.indexOf(record.kind),
      record.title,
      record.startAt,
      isScheduled ? record.startAt : isQueued ? (record.flow?.collect?.dueAt ?? atOnce) : null,
      record.recoveries,
      ...(holder === undefined ? [] : [isClaimed ? holder : null]),
    );
    // Another transaction has created the run in another session meanwhile.
    if (row === undefined) return "exists";
    const { id } = row;
    if (record.flow !== undefined) yield* storeFlow(id, record.flow, tenantId);
    const metadata: JsonObject = yield* insertMetadata(id, record);
    const { body, refs, commit } = draft;
    const position = positionAfter(chain, start, draft);
    const { seq, link } = position;
    const values = [id, commit.number, commit.at, seq, link, body, refs];
    const stored = yield* get<{ readonly id: number }>(insertCommit, ...values);
    const flowText = record.flow === undefined ? null : JSON.stringify(record.flow);
    const key: RunKey = { id, runId, agentId, sessionId, tenantId, userId, flowText };
    yield* effects.apply(key, draft, { precondition });
    yield* this.#options.added(key, (stored as { readonly id: number }).id, draft);
    if (workerId === null) return undefined;
    return this.#options.own({ ...key, epoch: 1, workerId, position }, { ...record, metadata }, draft);
  }

  /** Called after the transaction that created the run has committed. */
  committed({ creation, owned }: CreatedRun<Owned>, first: Commit): void {
    if (creation.kind !== "created") return;
    const { tables, feeds, effects } = this.#options;
    if (owned !== undefined) {
      tables.owned.set(owned.runId, owned);
      feeds.begin(owned, first);
    }
    effects.committed(first);
  }
}

/** The facts about a run that determine its state at its creation. */
interface FirstStanding {
  /** Whether the worker that creates the run also owns it at once. */
  readonly isClaimed: boolean;
  /** Whether the run waits for the compaction of its session. */
  readonly isHeld: boolean;
  /** Whether it waits for its start time. */
  readonly isScheduled: boolean;
  /** Whether the limits of the run must be checked first. */
  readonly isQueued: boolean;
}

/** Returns the state of a new run. */
function firstState({ isClaimed, isHeld, isScheduled, isQueued }: FirstStanding): number {
  if (isClaimed) return RunState.OWNED;
  if (isHeld) return RunState.HELD;
  if (isQueued) return RunState.QUEUED;
  return isScheduled ? RunState.SUSPENDED : RunState.READY;
}

/** The facts that determine whether input becomes steering. */
interface SteeringCase {
  /** Whether the caller also wants to steer a run that is being executed. */
  readonly always: boolean;
  /** Whether the run has unread mail. Matters only while its status is `pending`. */
  readonly isWoken: boolean;
}

/** S5: whether the input of `record` becomes steering of a run of the same agent in the same session. */
function takesSteering(run: RunSummary, record: RunRecord, { always, isWoken }: SteeringCase): boolean {
  const { status, waitsFor, startAt } = run;
  // A run that mail has woken is pending until a worker claims it. A held run waits for a compaction.
  const isLeft =
    status === "waiting" ||
    status === "paused" ||
    waitsFor.includes("compaction") ||
    (status === "pending" && isWoken);
  // L9: a run takes no input as steering before its start time.
  const isScheduled = startsLater({ startAt, createdAt: record.createdAt });
  return (always || (isLeft && !isScheduled)) && sameCaller(run, record);
}

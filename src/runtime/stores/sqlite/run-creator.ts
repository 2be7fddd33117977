import {
  chainStart,
  isInScope,
  runKinds,
  startsLater,
  type ClaimOptions,
  type Commit,
  type Creation,
  type JsonValue,
  type RunId,
  type RunRecord,
  type SingleFlight,
  type Submission,
  type TenantScope,
} from "../../../kernel/index.ts";
import { memberCount } from "../codec/member-count.ts";
import { contentsOf, positionAfter, type Draft } from "../codec/commit-draft.ts";
import { areFree } from "../sql/inbox.ts";
import { findSubmitted, hasMail } from "../sql/mailbox.ts";
import type { CommitEffects, SiblingTables } from "./commit-effects.ts";
import { insertCommit } from "./db/commit-row.ts";
import { tenantText, type RunKey } from "../codec/stored-run.ts";
import { firstState, takesSteering } from "../sql/run-creation.ts";
import type { Position } from "../codec/commit-draft.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { SqliteLeases } from "./leases.ts";
import type { Chain } from "../codec/chain.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import { isAvailable } from "../sql/sessions.ts";
import type { RunList } from "../sql/run-list.ts";
import { insertMetadata } from "../sql/run-metadata.ts";

/** The outcome of creating a run. */
export interface CreatedRun {
  readonly creation: Creation;
  /** The run, if it was claimed in the same transaction. */
  readonly owned?: OwnedRun;
}

export interface RunCreatorOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly chain: Chain;
  readonly leases: SqliteLeases;
  readonly list: RunList;
  readonly effects: CommitEffects;
  readonly siblings: SiblingTables;
}

const insertRun = `INSERT INTO runs (run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at,
    ready_at, mail_count, epoch, state, owner, holder, kind, title, start_at, wake_at, recoveries_in_all)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

/** Creates runs for the journal, inside its transactions. */
export class RunCreator {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #leases: SqliteLeases;
  readonly #list: RunList;
  readonly #effects: CommitEffects;
  readonly #siblings: SiblingTables;

  constructor({ tables, rows, chain, leases, list, effects, siblings }: RunCreatorOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#leases = leases;
    this.#list = list;
    this.#effects = effects;
    this.#siblings = siblings;
  }

  /** S5: creates the run, unless its agent has an unfinished run in the session and `flight` says that this run gets the input. */
  createNow(
    record: RunRecord,
    draft: Draft,
    flight: SingleFlight | undefined,
    claim?: ClaimOptions,
  ): CreatedRun {
    if (this.#tables.findNow(record.runId) !== undefined) return { creation: { kind: "exists" } };
    const instead = flight === undefined ? this.#refusal(record) : this.#steer(record, flight);
    if (instead !== undefined) return { creation: instead };
    const { inbox } = draft.commit;
    if (inbox !== undefined && !this.#tables.now(areFree(inbox))) return { creation: { kind: "taken" } };
    const owned = this.#insert(record, draft, claim);
    if (owned === undefined) return { creation: { kind: "created" } };
    const { runId, epoch, workerId } = owned;
    return { creation: { kind: "created", lease: { runId, epoch, workerId } }, owned };
  }

  /** Creates a run that is submitted together with a commit. */
  createSubmitted({ run, flight, isAlone }: Submission, draft: Draft): CreatedRun {
    const unfinished = isAlone === true ? this.#tables.now(this.#list.findUnfinished(run)) : undefined;
    if (unfinished !== undefined) return { creation: { kind: "busy", run: unfinished } };
    return this.createNow(run, draft, flight);
  }

  /** S5: refuses a compaction in a session that is not idle. */
  #refusal({ kind, sessionId }: RunRecord): Creation | undefined {
    const run = kind === "compaction" ? this.#tables.now(this.#list.findUnderWay(sessionId)) : undefined;
    return run === undefined ? undefined : { kind: "busy", run };
  }

  #steer(record: RunRecord, { steering, always, scope }: SingleFlight): Creation | undefined {
    const { mailbox } = this.#siblings;
    if (scope !== undefined && !this.#tables.now(isAvailable(record.sessionId, scope)))
      return { kind: "foreign" };
    const steered = this.#tables.now(findSubmitted(steering.id));
    if (steered !== undefined)
      return this.#isInScope(steered, scope) ? { kind: "steered", runId: steered } : { kind: "foreign" };
    const refusal = this.#refusal(record);
    if (refusal !== undefined) return refusal;
    const run = this.#tables.now(this.#list.findUnfinished(record));
    if (run === undefined) return undefined;
    // A run that keeps no history has no session.
    if (!isInScope(run, scope)) return { kind: "foreign" };
    const hasUnread = run.status === "pending" && this.#tables.now(hasMail(run.runId));
    if (!takesSteering(run, record, { always, hasMail: hasUnread })) return { kind: "busy", run };
    const { runId } = run;
    this.#tables.now(mailbox.putNow({ ...steering, runId }));
    return { kind: "steered", runId };
  }

  #isInScope(runId: RunId, scope: TenantScope | undefined): boolean {
    return scope === undefined || isInScope(this.#tables.runNow(runId), scope);
  }

  #insert(record: RunRecord, draft: Draft, claim: ClaimOptions | undefined): OwnedRun | undefined {
    const { database, holder } = this.#tables;
    const start: Position = { number: 0, seq: 0, link: chainStart(record) };
    const precondition = this.#effects.validate(draft, start);
    const { runId, agentId, sessionId, tenantId, userId, priority, agentVersion, createdAt } = record;
    const isHeld = record.kind !== "compaction" && this.#tables.now(this.#list.isCompacting(sessionId));
    const isScheduled = startsLater(record) && !isHeld;
    const workerId =
      !isHeld && claim !== undefined && this.#leases.wouldClaim(record, claim) ? claim.workerId : null;
    const isClaimed = workerId !== null;
    const id = database.insert(
      insertRun,
      runId,
      agentId,
      sessionId,
      tenantText(tenantId),
      userId,
      priority,
      agentVersion,
      createdAt,
      this.#tables.tick(),
      isClaimed ? 1 : 0,
      firstState({ isClaimed, isHeld, isScheduled }),
      workerId,
      isClaimed ? holder : null,
      runKinds.indexOf(record.kind),
      record.title,
      record.startAt,
      isScheduled ? record.startAt : null,
      record.recoveries,
    );
    const metadata = this.#tables.now(insertMetadata(id, record.metadata));
    const { body, refs, commit } = draft;
    const { number, at } = commit;
    const position = positionAfter(this.#chain, start, draft);
    const { seq, link } = position;
    const row = database.insert(insertCommit, id, number, at, seq, link, body, refs);
    const key: RunKey = { id, runId, agentId, sessionId, tenantId, userId };
    this.#effects.applyNow(key, draft, { precondition });
    this.#rows.addedNow(key, row, draft.values);
    if (!isClaimed) return undefined;
    const first = isImmutable(commit)
      ? commit
      : { number, at, nextEvent: seq, body, refs, contents: contentsOf(draft) };
    const beginning = { run: { ...record, metadata }, first };
    return { ...key, epoch: 1, workerId, position, beginning };
  }

  /** Notifies listeners and readers after the transaction that created the run has committed. */
  announce({ creation, owned }: CreatedRun, record: RunRecord, first: Commit): void {
    const { runId } = record;
    if (creation.kind !== "created") return;
    if (owned === undefined)
      this.#tables.announce({ kind: "new", runId, startAt: startsLater(record) ? record.startAt : null });
    else {
      this.#tables.owned.set(runId, owned);
      this.#siblings.feeds.begin(owned, first);
    }
    this.#effects.committed(first);
  }
}

/** Whether the first commit holds no object that the caller who submitted the run could still change. */
function isImmutable({ steps, tasks = [] }: Commit): boolean {
  if (steps !== undefined) return false;
  return tasks.every(
    (change) =>
      change.type === "create" && isPrimitive(change.task.input) && memberCount(change.task.metadata) === 0,
  );
}

function isPrimitive(value: JsonValue): boolean {
  return typeof value !== "object" || value === null;
}

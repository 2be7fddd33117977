import {
  chainStart,
  isInScope,
  runKinds,
  startsLater,
  type ClaimOptions,
  type Commit,
  type Creation,
  type RunId,
  type RunRecord,
  type SingleFlight,
  type Submission,
  type TenantScope,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { positionAfter, type Draft, type Position } from "../codec/commit-draft.ts";
import { tenantText, type RunKey } from "../codec/stored-run.ts";
import { firstState, takesSteering } from "../sql/run-creation.ts";
import type { CommitEffects, SiblingTables } from "./commit-effects.ts";
import { insertCommit } from "./db/commit-row.ts";
import type { Queries } from "./db/queries.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { agentsIn, areFree, inboxLock } from "../sql/inbox.ts";
import { findSubmitted, hasMail } from "../sql/mailbox.ts";
import type { PostgresLeases } from "./leases.ts";
import type { RunList } from "../sql/run-list.ts";
import { insertMetadata } from "../sql/run-metadata.ts";
import { sessionLock } from "../sql/session-rows.ts";
import { isAvailable } from "../sql/sessions.ts";

/** The outcome of creating a run. */
export interface CreatedRun {
  readonly creation: Creation;
  /** The run, if it was claimed in the same transaction. */
  readonly owned?: OwnedRun;
}

export interface RunCreatorOptions {
  readonly tables: Tables;
  readonly chain: Chain;
  readonly leases: PostgresLeases;
  readonly list: RunList;
  readonly effects: CommitEffects;
  readonly siblings: SiblingTables;
}

const insertRun = `INSERT INTO {runs} (run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at,
    ready_at, mail_count, epoch, state, owner, kind, title, start_at, wake_at, recoveries_in_all)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, $13, $14, $15, $16, $17)
  ON CONFLICT (run_id) DO NOTHING RETURNING id`;

/** Creates runs for the journal, inside its transactions, which hold the locks that `locksOf` returns. */
export class RunCreator {
  readonly #tables: Tables;
  readonly #chain: Chain;
  readonly #leases: PostgresLeases;
  readonly #list: RunList;
  readonly #effects: CommitEffects;
  readonly #siblings: SiblingTables;

  constructor({ tables, chain, leases, list, effects, siblings }: RunCreatorOptions) {
    this.#tables = tables;
    this.#chain = chain;
    this.#leases = leases;
    this.#list = list;
    this.#effects = effects;
    this.#siblings = siblings;
  }

  /** S5: the lock of the session lets one transaction at a time decide whether a run starts there. */
  locksOf({ sessionId }: RunRecord, draft: Draft): readonly string[] {
    const { inbox = [] } = draft.commit;
    return [
      sessionLock(sessionId),
      ...agentsIn(inbox).map(inboxLock),
      ...this.#effects.locksOf(draft, sessionId),
    ];
  }

  /** S5: creates the run, unless its agent has an unfinished run in the session and `flight` says that this run gets the input. */
  async create(
    transaction: Transaction,
    record: RunRecord,
    draft: Draft,
    {
      flight,
      claim,
    }: { readonly flight?: SingleFlight | undefined; readonly claim?: ClaimOptions | undefined },
  ): Promise<CreatedRun> {
    if ((await transaction.do(this.#tables.find(record.runId))) !== undefined)
      return { creation: { kind: "exists" } };
    const instead = await (flight === undefined
      ? this.#refusal(transaction, record)
      : this.#steer(transaction, record, flight));
    if (instead !== undefined) return { creation: instead };
    const { inbox } = draft.commit;
    if (inbox !== undefined && !(await transaction.do(areFree(inbox))))
      return { creation: { kind: "taken" } };
    const owned = await this.#insert(transaction, record, draft, claim);
    if (owned === "exists") return { creation: { kind: "exists" } };
    if (owned === undefined) {
      const startAt = startsLater(record) ? record.startAt : null;
      transaction.announce({ kind: "new", runId: record.runId, startAt });
      return { creation: { kind: "created" } };
    }
    const { runId, epoch, workerId } = owned;
    return { creation: { kind: "created", lease: { runId, epoch, workerId } }, owned };
  }

  /** Creates a run that is submitted together with a commit. */
  async createSubmitted(
    transaction: Transaction,
    { run, flight, isAlone }: Submission,
    draft: Draft,
  ): Promise<CreatedRun> {
    const unfinished = isAlone === true ? await transaction.do(this.#list.findUnfinished(run)) : undefined;
    if (unfinished !== undefined) return { creation: { kind: "busy", run: unfinished } };
    return this.create(transaction, run, draft, { flight });
  }

  /** S5: refuses a compaction in a session that is not idle. */
  async #refusal(transaction: Transaction, { kind, sessionId }: RunRecord): Promise<Creation | undefined> {
    const run = kind === "compaction" ? await transaction.do(this.#list.findUnderWay(sessionId)) : undefined;
    return run === undefined ? undefined : { kind: "busy", run };
  }

  async #steer(
    transaction: Transaction,
    record: RunRecord,
    { steering, always, scope }: SingleFlight,
  ): Promise<Creation | undefined> {
    const { mailbox } = this.#siblings;
    if (scope !== undefined && !(await transaction.do(isAvailable(record.sessionId, scope))))
      return { kind: "foreign" };
    const steered = await transaction.do(findSubmitted(steering.id));
    if (steered !== undefined)
      return (await this.#isInScope(transaction, steered, scope))
        ? { kind: "steered", runId: steered }
        : { kind: "foreign" };
    const refused = await this.#refusal(transaction, record);
    if (refused !== undefined) return refused;
    const run = await transaction.do(this.#list.findUnfinished(record));
    if (run === undefined) return undefined;
    // A run that keeps no history has no session.
    if (!isInScope(run, scope)) return { kind: "foreign" };
    const hasUnread = run.status === "pending" && (await transaction.do(hasMail(run.runId)));
    if (!takesSteering(run, record, { always, hasMail: hasUnread })) return { kind: "busy", run };
    const { runId } = run;
    await transaction.do(mailbox.putNow({ ...steering, runId }));
    return { kind: "steered", runId };
  }

  async #isInScope(queries: Queries, runId: RunId, scope: TenantScope | undefined): Promise<boolean> {
    return scope === undefined || isInScope(await queries.do(this.#tables.run(runId)), scope);
  }

  async #insert(
    transaction: Transaction,
    record: RunRecord,
    draft: Draft,
    claim: ClaimOptions | undefined,
  ): Promise<OwnedRun | "exists" | undefined> {
    const start: Position = { number: 0, seq: 0, link: chainStart(record) };
    const precondition = await this.#effects.validate(transaction, draft, start);
    const { runId, agentId, sessionId, tenantId, userId, priority, agentVersion, createdAt } = record;
    const isHeld = record.kind !== "compaction" && (await transaction.do(this.#list.isCompacting(sessionId)));
    const isScheduled = startsLater(record) && !isHeld;
    const isClaimed =
      !isHeld && claim !== undefined && (await this.#leases.wouldClaim(transaction, record, claim));
    const workerId = isClaimed ? claim.workerId : null;
    const row = await transaction.get<{ readonly id: number }>(
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
      runKinds.indexOf(record.kind),
      record.title,
      record.startAt,
      isScheduled ? record.startAt : null,
      record.recoveries,
    );
    // Another transaction has created the run in another session meanwhile.
    if (row === undefined) return "exists";
    await transaction.do(insertMetadata(row.id, record.metadata));
    const { body, refs, commit } = draft;
    const position = positionAfter(this.#chain, start, draft);
    const { seq, link } = position;
    const stored = await transaction.get<{ readonly id: number }>(
      insertCommit,
      row.id,
      commit.number,
      commit.at,
      seq,
      link,
      body,
      refs,
    );
    const key: RunKey = { id: row.id, runId, agentId, sessionId, tenantId, userId };
    await this.#effects.apply(transaction, key, draft, { id: stored?.id ?? 0, precondition });
    if (workerId === null) return undefined;
    return { ...key, epoch: 1, workerId, registration: this.#leases.registration(workerId), position };
  }

  /** Called after the transaction that created the run has committed. */
  committed({ creation, owned }: CreatedRun, first: Commit): void {
    if (creation.kind !== "created") return;
    if (owned !== undefined) {
      this.#tables.owned.set(owned.runId, owned);
      this.#siblings.feeds.begin(owned, first);
    }
    this.#effects.committed(first);
  }
}

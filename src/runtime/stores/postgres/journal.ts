import type {
  ApprovalPage,
  ApprovalQuery,
  ClaimOptions,
  CollectOptions,
  Commit,
  Creation,
  Journal,
  Lease,
  Rest,
  RunId,
  RunPage,
  RunQuery,
  RunRecord,
  RunSummary,
  SingleFlight,
  Submission,
  TenantScope,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import {
  draftCommit,
  positionAfter,
  type Draft,
  type DraftTools,
  type Position,
} from "../codec/commit-draft.ts";
import { recordOf, type RunKey, type RunRow } from "../codec/stored-run.ts";
import { endIn, spendIn } from "../run-end.ts";
import { changesMore, checkGaps } from "../sql/commit-check.ts";
import { CommitEffects, type CommitEffectsOptions } from "../sql/commit-effects.ts";
import { Deletion } from "../sql/deletion.ts";
import { fencedInsert } from "./db/commit-row.ts";
import type { Queries } from "./db/queries.ts";
import { isInScope, runColumns, scopeValues } from "../sql/run-row.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import type { PostgresLeases } from "./leases.ts";
import type { Collector } from "./retention/collector.ts";
import type { Eraser } from "./retention/eraser.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import type { RunList } from "../sql/run-list.ts";
import { RunCreator, type CreatedRun } from "../sql/run-creator.ts";
import { RunReader } from "./run-reader.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { RunFeeds } from "./tail/run-feed.ts";
import { sessionLock } from "../sql/session-rows.ts";

/** The parts of the store that a commit changes besides its run. */
interface SiblingTables extends Omit<CommitEffectsOptions, "tables" | "collector" | "eraser"> {
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
}

export interface PostgresJournalOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly chain: Chain;
  readonly draftTools: DraftTools;
  readonly collector: Collector;
  readonly eraser: Eraser;
  readonly leases: PostgresLeases;
  readonly list: RunList;
  readonly siblings: SiblingTables;
}

/** A commit that is to be appended, with what belongs to its transaction. */
interface Append {
  readonly lease: Lease;
  readonly commit: Commit;
  readonly submissions?: readonly Submission[] | undefined;
  /** Releases the run in any case. */
  readonly rest?: Rest | undefined;
}

/** What a transaction with a commit has done. */
interface Appended {
  /** The commit that is stored under the number. */
  readonly standing: Commit;
  /** The end of the journal, if the commit is new. */
  readonly position?: Position | undefined;
  readonly created?: readonly CreatedRun<OwnedRun>[] | undefined;
}

const findRun = `SELECT ${runColumns} FROM {runs} AS runs WHERE run_id = $1 AND ${isInScope(2)}`;

export class PostgresJournal implements Journal {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #draftTools: DraftTools;
  readonly #deletion: Deletion;
  readonly #effects: CommitEffects;
  readonly #leases: PostgresLeases;
  readonly #siblings: SiblingTables;
  readonly #list: RunList;
  readonly #creator: RunCreator<OwnedRun>;
  readonly #reader: RunReader;

  constructor(options: PostgresJournalOptions) {
    const { tables, rows, chain, draftTools, collector, eraser, leases, list, siblings } = options;
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#draftTools = draftTools;
    this.#deletion = new Deletion({ tables, collector, ...siblings });
    this.#effects = new CommitEffects({ tables, collector, eraser, ...siblings });
    this.#leases = leases;
    this.#siblings = siblings;
    this.#list = list;
    this.#creator = new RunCreator({
      tables,
      chain,
      list,
      effects: this.#effects,
      mailbox: siblings.mailbox,
      feeds: siblings.feeds,
      wouldClaim: (record, claim) => leases.wouldClaim(record, claim),
      added: (run, id, { values }) => rows.keep(run, id, values),
      own: (run) => ({ ...run, registration: leases.registration(run.workerId) }),
    });
    this.#reader = new RunReader(tables, rows);
  }

  create(record: RunRecord, first: Commit, flight?: SingleFlight): Promise<Creation> {
    return this.createAndClaim(record, first, flight);
  }

  async createAndClaim(
    record: RunRecord,
    first: Commit,
    flight?: SingleFlight,
    claim?: ClaimOptions,
  ): Promise<Creation> {
    const draft = this.#draft(first, record);
    const kept = { ...record, metadata: structuredClone(record.metadata) };
    const created = await this.#tables.database.write(
      (transaction) => transaction.do(this.#creator.createAlone(kept, draft, flight, claim)),
      (transaction, { owned }) => {
        if (owned !== undefined) this.#leases.doubt({ workerId: owned.workerId, transaction, runs: [owned] });
      },
    );
    this.#creator.committed(created, first);
    return created.creation;
  }

  async find(runId: RunId, scope?: TenantScope): Promise<RunRecord | undefined> {
    const row = await this.#tables.database.statements.get<RunRow>(findRun, runId, ...scopeValues(scope));
    return row === undefined ? undefined : recordOf(row);
  }

  summary(runId: RunId): Promise<RunSummary | undefined> {
    return this.#list.find(runId);
  }

  list(query?: RunQuery): Promise<RunPage> {
    return this.#list.read(query);
  }

  approvals(query?: ApprovalQuery): Promise<ApprovalPage> {
    return this.#siblings.approvals.read(query);
  }

  async append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): Promise<Commit> {
    const run = this.#tables.known(lease);
    if (run !== undefined && submissions === undefined) {
      const draft = this.#draft(commit, run);
      if (!changesMore(draft) && (await this.#appendAlone(run, draft))) return commit;
    }
    return this.#appendWith({ lease, commit, submissions });
  }

  appendAndRelease(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit> {
    return this.#appendWith({ lease, commit, submissions, rest });
  }

  async *read(runId: RunId, from = 0): AsyncIterable<Commit> {
    for await (const page of this.#reader.pages(runId, from)) yield* page;
  }

  replay(runId: RunId, visit: (commit: Commit) => void): Promise<RunRecord> {
    return this.#reader.replay(runId, visit);
  }

  delete(runId: RunId): Promise<void> {
    return this.#deletion.delete(runId);
  }

  collect(options: CollectOptions): Promise<number> {
    return this.#deletion.collect(options);
  }

  #draft(commit: Commit, run: Omit<RunKey, "id">): Draft {
    return draftCommit(commit, run, this.#draftTools);
  }

  /**
   * J1, J3: fence and commit in one statement. Returns `false` if nothing was written, because the lease is lost or the number is
   * taken; also if the statement was repeated after a lost connection and had succeeded before.
   */
  async #appendAlone(run: OwnedRun, draft: Draft): Promise<boolean> {
    const { statements } = this.#tables.database;
    run.position ??= await statements.do(this.#rows.position(run));
    const before = run.position;
    if (draft.commit.number !== before.number) return false;
    checkGaps(draft.commit, before);
    await this.#clearDeltas(run, draft.commit);
    const next = positionAfter(this.#chain, before, draft);
    if ((await this.#insert(statements, run, draft, next)) === undefined) return false;
    run.position = next;
    this.#committed(run, draft.commit);
    return true;
  }

  /** Writes the commit in a transaction, with the submissions if the commit is new, and with the release in any case. */
  async #appendWith(append: Append): Promise<Commit> {
    const { lease, commit, submissions, rest } = append;
    const runs = submissions?.map((each) => ({ ...each, draft: this.#draft(each.first, each.run) })) ?? [];
    const known = this.#tables.known(lease);
    const early = known && this.#draft(commit, known);
    if (known !== undefined) await this.#clearDeltas(known, commit);
    const { standing, position, created } = await this.#tables.database.write(
      async (transaction): Promise<Appended> => {
        const run = await transaction.do(this.#tables.owner(lease));
        const draft = early ?? this.#draft(commit, run);
        const names = [
          ...this.#effects.locksOf(draft, run.sessionId),
          ...(rest === undefined ? [] : [sessionLock(run.sessionId)]),
          ...runs.flatMap((each) => this.#creator.locksOf(each.run, each.draft)),
        ];
        await transaction.do(this.#effects.lock(run, commit, names));
        // Submitted runs must see that this run has ended, so in that case the end is stored before the release.
        const isLast = rest !== undefined && runs.length === 0;
        const appended = await this.#append(transaction, lease, draft, isLast);
        const made: CreatedRun<OwnedRun>[] = [];
        if (appended.standing === commit)
          for (const each of runs)
            made.push(await transaction.do(this.#creator.createSubmitted(each, each.draft)));
        if (rest !== undefined) await this.#release(transaction, lease, rest, appended.standing);
        return { ...appended, created: made };
      },
    );
    const run = this.#tables.known(lease);
    if (run !== undefined && position !== undefined) run.position = position;
    if (standing === commit) this.#committed(lease, commit);
    if (rest !== undefined) this.#leases.released(lease);
    created?.forEach((each, index) => {
      const first = submissions?.[index]?.first;
      if (first !== undefined) this.#creator.committed(each, first);
    });
    return standing;
  }

  /** Releases the run. How it ended is stored with the release. */
  async #release(transaction: Transaction, lease: Lease, rest: Rest, standing: Commit): Promise<void> {
    const run = await transaction.do(this.#tables.owner(lease));
    const end = endIn(standing) ?? undefined;
    const isLeft = await this.#leases.leave(transaction, run, rest, { end, spent: spendIn(standing) });
    // Rejects with `lease_lost`.
    if (!isLeft) await transaction.do(this.#tables.ownerNow(lease));
  }

  /** J1, J3: appends the commit, or returns the commit that is already stored under its number. */
  async #append(transaction: Transaction, lease: Lease, draft: Draft, isLast: boolean): Promise<Appended> {
    const { commit } = draft;
    const known = this.#tables.known(lease);
    if (known?.position?.number === commit.number) {
      const position = await this.#tryAppend(transaction, known, draft, { before: known.position, isLast });
      if (position !== undefined) return { standing: commit, position };
    }
    // The lease is lost, the number is taken or leaves a gap, or another store has written: only the database can tell.
    const run = await transaction.do(this.#tables.ownerNow(lease));
    const stored = await transaction.do(this.#rows.row(run, commit.number));
    const before = await transaction.do(this.#rows.position(run));
    if (stored !== undefined) {
      const [standing = commit] = await transaction.do(this.#rows.decode(run, [stored]));
      // An earlier attempt of this call stored the commit, and its answer was lost.
      const isOwn = known?.position !== undefined && stored.link === this.#linkOf(known.position, draft);
      return { standing: isOwn ? commit : standing, position: before };
    }
    const position = await this.#tryAppend(transaction, run, draft, { before, isLast });
    if (position !== undefined) return { standing: commit, position };
    await transaction.do(this.#tables.ownerNow(lease));
    return this.#append(transaction, lease, draft, isLast);
  }

  #linkOf(before: Position, draft: Draft): string | undefined {
    return before.number === draft.commit.number ? positionAfter(this.#chain, before, draft).link : undefined;
  }

  /** Returns the end of the journal after the commit, or `undefined` if nothing was written. */
  async #tryAppend(
    transaction: Transaction,
    run: OwnedRun,
    draft: Draft,
    { before, isLast }: { readonly before: Position; readonly isLast: boolean },
  ): Promise<Position | undefined> {
    const precondition = await transaction.do(this.#effects.validate(draft, before));
    const next = positionAfter(this.#chain, before, draft);
    const row = await this.#insert(transaction, run, draft, next);
    if (row === undefined) return undefined;
    if (draft.values.length > 0) await transaction.do(this.#rows.keep(run, row.id, draft.values));
    await transaction.do(this.#effects.apply(run, draft, { precondition, isLast }));
    return next;
  }

  #insert(
    queries: Queries,
    { id, runId, epoch, workerId }: OwnedRun,
    { commit, body, refs }: Draft,
    { seq, link }: Position,
  ): Promise<{ readonly id: number } | undefined> {
    const { number, at, events } = commit;
    const cleared = this.#siblings.deltas.storedKeys(runId, events);
    const values = [id, number, at, seq, link, body, refs, epoch, workerId, cleared] as const;
    return queries.get(fencedInsert, ...values);
  }

  /** E2: forgets the deltas of what the commit records, and waits for a batch of deltas that is being written. */
  async #clearDeltas({ runId }: RunKey, { events }: Commit): Promise<void> {
    const { deltas } = this.#siblings;
    deltas.recorded(runId, events);
    if (deltas.storedKeys(runId, events).length > 0) await deltas.settled();
  }

  #committed({ runId }: Pick<Lease, "runId">, commit: Commit): void {
    this.#siblings.feeds.add(runId, commit);
    this.#effects.committed(commit);
  }
}

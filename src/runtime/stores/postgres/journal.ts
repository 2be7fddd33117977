import type {
  ClaimOptions,
  Commit,
  Creation,
  Lease,
  Rest,
  RunRecord,
  SingleFlight,
  Submission,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { positionAfter, type Draft, type Position } from "../codec/commit-draft.ts";
import type { RunKey } from "../codec/stored-run.ts";
import { endIn, spendIn } from "../run-end.ts";
import { changesMore, checkGaps } from "../sql/commit-check.ts";
import { gateLocks } from "../sql/flow-queue.ts";
import { SqlJournal, type JournalParts } from "../sql/journal.ts";
import type { CreatedRun } from "../sql/run-creator.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { Queries } from "./db/queries.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import { isReadCommitted, type Transaction } from "./db/transaction.ts";
import { CreationGroup } from "./creation-group.ts";
import type { PostgresLeases } from "./leases.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import { RunReader } from "./run-reader.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { RunFeeds } from "./tail/run-feed.ts";

export interface PostgresJournalOptions extends JournalParts<OwnedRun> {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly leases: PostgresLeases;
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
}

/** A commit to append, with everything that belongs to the same transaction. */
interface Append {
  readonly lease: Lease;
  readonly commit: Commit;
  readonly submissions?: readonly Submission[] | undefined;
  /** Releases the run in any case. */
  readonly rest?: Rest | undefined;
}

/** The result of a transaction with a commit. */
interface Appended {
  /** The commit that is stored under the number. */
  readonly standing: Commit;
  /** The end of the journal, if the commit is new. */
  readonly position?: Position | undefined;
  readonly created?: readonly CreatedRun<OwnedRun>[] | undefined;
}

const otherLevel = -1;
/**
 * J1, J3: SQL that inserts a commit if its writer owns the run and its number is free, and deletes the deltas of
 * the messages that it records. Otherwise it returns no row, or the id `otherLevel` if the transaction has another
 * isolation level than needed. The function first locks the row of the run. The lock waits for a transaction that
 * takes the run, and then sees that the owner has changed. A transaction that wants to take the run waits until the
 * commit is stored.
 */
const fencedInsert = `SELECT id FROM (SELECT CASE WHEN ${isReadCommitted}
    THEN {append_commit}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::text[]) ELSE ${otherLevel} END AS id) AS appended WHERE id IS NOT NULL`;

export class PostgresJournal extends SqlJournal<OwnedRun> {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #leases: PostgresLeases;
  readonly #deltas: DeltaBoard;
  readonly #feeds: RunFeeds;
  readonly #creations: CreationGroup;
  /** Whether single statements must set their isolation level, because the server has another default. */
  #statesLevel = false;

  constructor({ rows, leases, ...parts }: PostgresJournalOptions) {
    const { tables, chain, deltas, feeds } = parts;
    super({
      ...parts,
      reader: new RunReader(tables, rows),
      wouldClaim: (record, claim) => leases.wouldClaim(record, claim),
      added: (run, id, { values }) => rows.keep(run, id, values),
      own: (run) => ({ ...run, registration: leases.registration(run.workerId) }),
    });
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#leases = leases;
    this.#deltas = deltas;
    this.#feeds = feeds;
    this.#creations = new CreationGroup(tables.database, this.creator);
  }

  override async createAndClaim(
    record: RunRecord,
    first: Commit,
    flight?: SingleFlight,
    claim?: ClaimOptions,
  ): Promise<Creation> {
    const draft = this.draft(first, record);
    const kept = { ...record, metadata: structuredClone(record.metadata) };
    const isPlain = flight === undefined && claim === undefined && first.inbox === undefined;
    const created = isPlain
      ? await this.#creations.create({ record: kept, draft })
      : await this.#tables.database.write(
          (transaction) => transaction.do(this.creator.createAlone(kept, draft, flight, claim)),
          (transaction, { owned }) => {
            if (owned !== undefined)
              this.#leases.doubt({ workerId: owned.workerId, transaction, runs: [owned] });
          },
        );
    this.creator.committed(created, first);
    return created.creation;
  }

  override async append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): Promise<Commit> {
    const run = this.#tables.known(lease);
    if (run !== undefined && submissions === undefined) {
      const draft = this.draft(commit, run);
      if (!changesMore(draft) && (await this.#appendAlone(run, draft))) return commit;
    }
    return this.#appendWith({ lease, commit, submissions });
  }

  override appendAndRelease(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit> {
    return this.#appendWith({ lease, commit, submissions, rest });
  }

  /**
   * J1, J3: checks the lease and writes the commit in one statement. Returns `false` if nothing was written,
   * because the lease is lost or the number is taken. It also returns `false` if the statement had succeeded before
   * a lost connection and was repeated.
   */
  async #appendAlone(run: OwnedRun, draft: Draft): Promise<boolean> {
    const { statements } = this.#tables.database;
    run.position ??= await statements.do(this.#rows.position(run));
    const before = run.position;
    if (draft.commit.number !== before.number) return false;
    checkGaps(draft.commit, before);
    await this.#clearDeltas(run, draft.commit);
    const next = positionAfter(this.#chain, before, draft);
    if ((await this.#insertAlone(run, draft, next)) === undefined) return false;
    run.position = next;
    this.#committed(run, draft.commit);
    return true;
  }

  /**
   * Writes the commit in a transaction. If the commit is new, the transaction includes the submissions; it always
   * includes the release.
   */
  async #appendWith(append: Append): Promise<Commit> {
    const { lease, commit, submissions, rest } = append;
    const runs = submissions?.map((each) => ({ ...each, draft: this.draft(each.first, each.run) })) ?? [];
    const known = this.#tables.known(lease);
    const early = known && this.draft(commit, known);
    if (known !== undefined) await this.#clearDeltas(known, commit);
    const { standing, position, created } = await this.#tables.database.write(
      async (transaction): Promise<Appended> => {
        const run = await transaction.do(this.#tables.owner(lease));
        const draft = early ?? this.draft(commit, run);
        const names = [
          ...this.effects.locksOf(draft, run.sessionId, run),
          ...(rest === undefined ? [] : [sessionLock(run.sessionId), ...gateLocks(run)]),
          ...runs.flatMap((each) => this.creator.locksOf(each.run, each.draft)),
        ];
        await transaction.do(this.effects.lock(run, commit, names));
        // Submitted runs must see that this run has ended, so in that case the end is stored before the release.
        const isLast = rest !== undefined && runs.length === 0;
        const appended = await this.#append(transaction, lease, draft, isLast);
        const made: CreatedRun<OwnedRun>[] = [];
        if (appended.standing === commit && submissions !== undefined) {
          for (const each of runs)
            made.push(await transaction.do(this.creator.createSubmitted(each, each.draft)));
          await transaction.do(this.effects.deliver(commit, submissions));
        }
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
      if (first !== undefined) this.creator.committed(each, first);
    });
    return standing;
  }

  /** Releases the run, and stores with it how the run ended. */
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
    // An earlier attempt of this call may be stored at any moment, so the end is read before the row: the row cannot be
    // missed once the end is behind it.
    const end = await transaction.do(this.#rows.position(run));
    if (commit.number < end.number) {
      const stored = await transaction.do(this.#rows.page(run, commit.number, commit.number + 1));
      const [standing = commit] = await transaction.do(this.#rows.decode(run, stored));
      const before = await transaction.do(this.#rows.position(run, commit.number));
      // An earlier attempt of this call stored the commit, and its answer was lost.
      const isOwn = stored[0]?.link === positionAfter(this.#chain, before, draft).link;
      return { standing: isOwn ? commit : standing, position: end };
    }
    const position = await this.#tryAppend(transaction, run, draft, { before: end, isLast });
    if (position !== undefined) return { standing: commit, position };
    await transaction.do(this.#tables.ownerNow(lease));
    return this.#append(transaction, lease, draft, isLast);
  }

  /** Returns the end of the journal after the commit, or `undefined` if nothing was written. */
  async #tryAppend(
    transaction: Transaction,
    run: OwnedRun,
    draft: Draft,
    { before, isLast }: { readonly before: Position; readonly isLast: boolean },
  ): Promise<Position | undefined> {
    const precondition = await transaction.do(this.effects.validate(draft, before));
    const next = positionAfter(this.#chain, before, draft);
    const row = await this.#insert(transaction, run, draft, next);
    if (row === undefined) return undefined;
    if (draft.values.length > 0) await transaction.do(this.#rows.keep(run, row.id, draft.values));
    await transaction.do(this.effects.apply(run, draft, { precondition, isLast }));
    return next;
  }

  async #insertAlone(run: OwnedRun, draft: Draft, next: Position): Promise<object | undefined> {
    const { guarded, statements } = this.#tables.database;
    if (!this.#statesLevel) {
      const row = await this.#insert(guarded, run, draft, next);
      if (row?.id !== otherLevel) return row;
      this.#statesLevel = true;
    }
    return this.#insert(statements, run, draft, next);
  }

  #insert(
    queries: Queries,
    { id, runId, epoch, workerId }: OwnedRun,
    { commit, body, refs }: Draft,
    { seq, link }: Position,
  ): Promise<{ readonly id: number } | undefined> {
    const { number, at, events } = commit;
    const cleared = this.#deltas.storedKeys(runId, events);
    const values = [id, number, at, seq, link, body, refs, epoch, workerId, cleared] as const;
    return queries.get(fencedInsert, ...values);
  }

  /**
   * E2: removes the deltas of the messages that the commit records, and waits for a batch of deltas that is being
   * written.
   */
  async #clearDeltas({ runId }: RunKey, { events }: Commit): Promise<void> {
    this.#deltas.recorded(runId, events);
    if (this.#deltas.storedKeys(runId, events).length > 0) await this.#deltas.settled();
  }

  #committed({ runId }: Pick<Lease, "runId">, commit: Commit): void {
    this.#feeds.add(runId, commit);
    this.effects.committed(commit);
  }
}

import {
  attempt,
  type ClaimOptions,
  type Commit,
  type Creation,
  type JsonValue,
  type Lease,
  type MaybePromise,
  type Rest,
  type RunId,
  type RunRecord,
  type SingleFlight,
  type Submission,
} from "../../../kernel/index.ts";
import type { Chain } from "../codec/chain.ts";
import { bytesOf, contentsOf, positionAfter, type Draft, type Position } from "../codec/commit-draft.ts";
import type { CommitText } from "../codec/commit-row.ts";
import { memberCount } from "../codec/member-count.ts";
import { endIn, spendIn } from "../run-end.ts";
import { changesMore, checkGaps } from "../sql/commit-check.ts";
import { SqlJournal, type JournalParts } from "../sql/journal.ts";
import type { CreatedRun } from "../sql/run-creator.ts";
import type { Precondition } from "../sql/session-changes.ts";
import { done } from "../sql/work.ts";
import type { Statement } from "./db/statement.ts";
import type { OwnedRun, Tables } from "./db/tables.ts";
import type { ReleasedRun, SqliteLeases } from "./leases.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import { RunReader } from "./run-reader.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { RunFeeds } from "./tail/run-feed.ts";

export interface SqliteJournalOptions extends JournalParts<OwnedRun> {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly leases: SqliteLeases;
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
}

/**
 * The position after a commit. If the commit shares its transaction with other writes, it also has the version of
 * the database.
 */
interface Turn {
  readonly next: Position;
  readonly version: number | undefined;
}

/** A commit to append, with everything that belongs to the same transaction. */
interface Append {
  readonly commit: Commit;
  /**
   * The draft of the commit. `undefined` if this store does not own the run, because ownership is checked before
   * the draft is made.
   */
  readonly draft: Draft | undefined;
  readonly submissions?: readonly Submission[] | undefined;
  /** Releases the run in any case. */
  readonly rest?: Rest;
}

const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body, refs)";
const insertCommit = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?, ?)`;
const fencedInsert = `${intoCommits}
  SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7 FROM runs WHERE id = ?1 AND epoch = ?8 AND holder = ?9`;

export class SqliteJournal extends SqlJournal<OwnedRun> {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #leases: SqliteLeases;
  readonly #deltas: DeltaBoard;
  readonly #feeds: RunFeeds;
  readonly #fencedInsert: Statement;

  constructor({ rows, leases, ...parts }: SqliteJournalOptions) {
    const { tables, chain, deltas, feeds } = parts;
    super({
      ...parts,
      reader: new RunReader(tables, rows),
      holder: tables.holder,
      wouldClaim: (record, claim) => leases.wouldClaim(record, claim),
      added: (run, id, { values }) => done(rows.addedNow(run, id, values)),
      own: (run, record, draft) => ({
        ...run,
        beginning: { run: record, first: firstCommit(draft, run.position) },
      }),
    });
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#leases = leases;
    this.#deltas = deltas;
    this.#feeds = feeds;
    this.#fencedInsert = tables.database.statement(fencedInsert);
  }

  override async createAndClaim(
    record: RunRecord,
    first: Commit,
    flight?: SingleFlight,
    claim?: ClaimOptions,
  ): Promise<Creation> {
    const draft = this.draft(first, record);
    const { creation } = await this.#tables.write({
      bytes: bytesOf(draft),
      apply: () => this.#tables.now(this.creator.createAlone(record, draft, flight, claim)),
      committed: (created) => this.creator.committed(created, first),
    });
    return creation;
  }

  override append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): MaybePromise<Commit> {
    return attempt(() => {
      const run = this.#tables.owned.get(lease.runId);
      const draft = run === undefined ? undefined : this.draft(commit, run);
      const stored =
        run === undefined || draft === undefined || submissions !== undefined
          ? undefined
          : this.#appendNow(lease, run, draft);
      return stored ?? this.#appendWith(lease, { commit, draft, submissions });
    });
  }

  override async appendAndRelease(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit> {
    const run = this.#tables.owned.get(lease.runId);
    const draft = run === undefined ? undefined : this.draft(commit, run);
    return this.#appendWith(lease, { commit, draft, submissions, rest });
  }

  /**
   * Appends the commit at once. `undefined` means that nothing was written and the commit must wait for a
   * transaction.
   */
  #appendNow(lease: Lease, run: OwnedRun, draft: Draft): Commit | undefined {
    const { commit } = draft;
    if (!this.#tables.writesNow || this.#changesMore(lease.runId, draft)) return undefined;
    const before = run.position;
    try {
      const standing = this.#tables.writeNow(
        () => this.#append(lease, draft, undefined, false),
        draft.body.length,
      );
      if (standing === undefined) run.position = before;
      if (standing === commit) this.#committed(lease, commit);
      return standing;
    } catch (error) {
      run.position = before;
      throw error;
    }
  }

  /** Whether the commit changes more than its own row. */
  #changesMore(runId: RunId, draft: Draft): boolean {
    const { events } = draft.commit;
    return (
      this.#rows.isCrowded ||
      changesMore(draft) ||
      (events !== undefined && this.#deltas.isWritten(runId, events))
    );
  }

  /**
   * Writes the commit in a grouped transaction. If the commit is new, the transaction includes the submissions; it
   * always includes the release.
   */
  async #appendWith(lease: Lease, append: Append): Promise<Commit> {
    const { owned } = this.#tables;
    const { commit, submissions, rest } = append;
    let { draft } = append;
    const runs = submissions?.map((each) => ({ ...each, draft: this.draft(each.first, each.run) }));
    let created: readonly CreatedRun<OwnedRun>[] | undefined;
    let released: ReleasedRun | undefined;
    let before: Position | undefined;
    return this.#tables.write({
      bytes: draft === undefined ? 0 : bytesOf(draft),
      isOneStatement: () =>
        runs === undefined &&
        rest === undefined &&
        draft !== undefined &&
        !this.#changesMore(lease.runId, draft),
      apply: (version) => {
        const run = this.#tables.ownerOf(lease);
        draft ??= this.draft(commit, run);
        before = run.position;
        // Submitted runs must see that this run has ended, so in that case the end is stored before the release.
        const isLast = rest !== undefined && runs === undefined;
        const standing = this.#append(lease, draft, version, isLast);
        if (standing === commit && submissions !== undefined) {
          created = runs?.map((each) => this.#tables.now(this.creator.createSubmitted(each, each.draft)));
          this.#tables.now(this.effects.deliver(commit, submissions));
        }
        if (rest !== undefined) released = this.#release(lease, rest, standing);
        return standing;
      },
      committed: (standing) => {
        if (standing === commit) this.#committed(lease, commit);
        if (released !== undefined) this.#leases.released(lease.runId, released);
        created?.forEach((each, index) => {
          const first = submissions?.[index]?.first;
          if (first !== undefined) this.creator.committed(each, first);
        });
      },
      // Most often the file was locked and nothing has changed.
      undone: () => {
        const run = owned.get(lease.runId);
        if (run !== undefined) run.position = before;
      },
    });
  }

  /** Releases the run, and stores with it how the run ended. */
  #release(lease: Lease, rest: Rest, standing: Commit): ReleasedRun {
    const end = endIn(standing) ?? undefined;
    const released = this.#leases.leaveNow(this.#tables.ownerOf(lease), rest, end, spendIn(standing));
    // The commit was accepted, so the lease is current. An `Error`, because a `Fault` would not roll back the commit.
    if (released === undefined) throw new Error(`${lease.runId} could not be released`);
    return released;
  }

  #committed({ runId }: Lease, commit: Commit): void {
    this.#feeds.add(runId, commit);
    this.effects.committed(commit);
  }

  /** J1, J3: appends the commit, or returns the commit that is already stored under its number. */
  #append(lease: Lease, draft: Draft, version: number | undefined, isLast: boolean): Commit {
    const { commit } = draft;
    const run = this.#tables.ownerOf(lease);
    run.position ??= this.#rows.position(run);
    if (commit.number === run.position.number) {
      const precondition = this.#validate(draft, run.position);
      const next = positionAfter(this.#chain, run.position, draft);
      const row = this.#insert(run, draft, { next, version });
      if (row !== undefined) {
        run.position = next;
        if (changesMore(draft)) this.#tables.now(this.effects.apply(run, draft, { precondition, isLast }));
        if (commit.events !== undefined) this.#deltas.removeNow(run, commit.events);
        this.#rows.addedNow(run, row, draft.values);
        return commit;
      }
    }
    // The lease is lost, the number is taken or leaves a gap, or another store became the holder: only the file can
    // tell.
    const now = this.#tables.now(this.#tables.ownerNow(lease));
    const standing = this.#rows.row(now, commit.number);
    if (standing !== undefined) return this.#rows.decode(now, standing);
    const { database, holder } = this.#tables;
    database.run("UPDATE runs SET holder = ? WHERE id = ? AND epoch = ?", holder, now.id, now.epoch);
    now.position = this.#rows.position(now);
    this.#validate(draft, now.position);
    return this.#append(lease, draft, version, isLast);
  }

  /**
   * Validates a commit as `CommitEffects.validate` does. Most commits change no session and need no statement for
   * this.
   */
  #validate(draft: Draft, position: Position): Precondition | undefined {
    if (draft.sessions.length > 0) return this.#tables.now(this.effects.validate(draft, position));
    checkGaps(draft.commit, position);
    return undefined;
  }

  /**
   * Inserts the row of a commit and returns its id, or `undefined` if the lease is lost or another store is the
   * holder.
   */
  #insert(run: OwnedRun, { commit, body, refs }: Draft, { next, version }: Turn): number | undefined {
    const { database, holder } = this.#tables;
    const { id, epoch } = run;
    const { number, at } = commit;
    const { seq, link } = next;
    if (version !== undefined && run.takenAt === version)
      return database.insert(insertCommit, id, number, at, seq, link, body, refs);
    const inserted = this.#fencedInsert.run(id, number, at, seq, link, body, refs, epoch, holder);
    if (inserted.changes === 0) return undefined;
    if (version !== undefined) run.takenAt = version;
    return Number(inserted.lastInsertRowid);
  }
}

/**
 * Returns the first commit of a new run for its owner: the commit itself, or its text if a caller could still
 * change it.
 */
function firstCommit(draft: Draft, { seq }: Position): Commit | CommitText {
  const { commit, body, refs } = draft;
  if (isImmutable(commit)) return commit;
  const { number, at } = commit;
  return { number, at, nextEvent: seq, body, refs, contents: contentsOf(draft) };
}

/** Whether the first commit contains no object that the caller who submitted the run could still change. */
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

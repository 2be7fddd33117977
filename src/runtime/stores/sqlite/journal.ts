import type { StatementSync } from "node:sqlite";
import {
  assertOutcome,
  chainStart,
  Fault,
  type Commit,
  type Creation,
  type Hash,
  type Journal,
  type Lease,
  type RunHistory,
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  runStatuses,
  type SingleFlight,
  type Submission,
} from "../../../kernel/index.ts";
import type { SqliteBlobs } from "./blobs.ts";
import type { Chain } from "./chain.ts";
import type { Collector } from "./collector.ts";
import { encodeCommit } from "./commit-codec.ts";
import { missing, type CommitRows } from "./commit-rows.ts";
import { Deletion } from "./deletion.ts";
import type { DeltaBoard } from "./delta-board.ts";
import { strandsOf, type StrandedChange } from "./entry-strand.ts";
import type { Eraser } from "./eraser.ts";
import { endIn, type RunEnd } from "../run-end.ts";
import type { RunFeeds } from "./run-feed.ts";
import { RunList } from "./run-list.ts";
import type { SqliteInbox } from "./inbox.ts";
import type { SqliteMailbox } from "./mailbox.ts";
import {
  recordOf,
  runColumns,
  runKeyColumns,
  RunState,
  tenantText,
  type RunKey,
  type RunRow,
} from "./run-row.ts";
import type { SqliteSessions } from "./sessions.ts";
import type { OwnedRun, Position, Tables } from "./tables.ts";
import type { SqliteTopics } from "./topics.ts";

/** What a commit changes besides its run. */
interface Neighbours {
  readonly sessions: SqliteSessions;
  readonly mailbox: SqliteMailbox;
  readonly inbox: SqliteInbox;
  readonly topics: SqliteTopics;
  readonly blobs: SqliteBlobs;
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
}

export interface SqliteJournalOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly chain: Chain;
  readonly hash: Hash;
  readonly collector: Collector;
  readonly eraser: Eraser;
  readonly neighbours: Neighbours;
}

/** A commit with all that can be worked out of it before its turn to be written. */
interface Draft {
  readonly commit: Commit;
  readonly sessions: readonly StrandedChange[];
  readonly body: string;
}

/** Where a commit leads, and the database's version if it is one of several. */
interface Turn {
  readonly next: Position;
  readonly version: number | undefined;
}

const none: readonly never[] = [];

const findRun = `SELECT ${runColumns} FROM runs WHERE run_id = ?`;
const findRunAndKey = `SELECT ${runColumns}, ${runKeyColumns} FROM runs WHERE run_id = ?`;
const insertRun = `INSERT INTO runs (run_id, agent_id, session_id, tenant, user_id, priority, agent_version, created_at,
    epoch, state, ready_at, mail_count)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ${RunState.READY}, ?, 0)`;
const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body)";
const plainInsert = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?)`;
const fencedInsert = `${intoCommits} SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1 AND epoch = ?7 AND holder = ?8`;

export class SqliteJournal implements Journal {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #hash: Hash;
  readonly #deletion: Deletion;
  readonly #eraser: Eraser;
  readonly #neighbours: Neighbours;
  readonly #list: RunList;
  readonly #fencedInsert: StatementSync;

  constructor({ tables, rows, chain, hash, collector, eraser, neighbours }: SqliteJournalOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#hash = hash;
    this.#deletion = new Deletion({ tables, collector, ...neighbours });
    this.#eraser = eraser;
    this.#neighbours = neighbours;
    this.#list = new RunList(tables, rows);
    this.#fencedInsert = tables.database.statement(fencedInsert);
  }

  async create(record: RunRecord, first: Commit, flight?: SingleFlight): Promise<Creation> {
    const draft = this.#draft(first, record);
    return this.#tables.write({
      bytes: draft.body.length,
      apply: () => this.#createUnlessBusy(record, draft, flight),
      committed: (creation) => this.#tellOf(creation, record, first),
    });
  }

  find(runId: RunId): Promise<RunRecord | undefined> {
    return this.#tables.read(() => {
      const row = this.#tables.database.get<RunRow>(findRun, runId);
      return row === undefined ? undefined : recordOf(row);
    });
  }

  list(query?: RunQuery): Promise<RunPage> {
    return this.#list.read(query);
  }

  append(lease: Lease, commit: Commit, submissions?: readonly Submission[]): Promise<Commit> {
    return submissions === undefined
      ? this.#appendWith(lease, commit)
      : this.#appendAndSubmit(lease, commit, submissions);
  }

  appendNow(lease: Lease, commit: Commit): Commit | undefined {
    const run = this.#tables.owned.get(lease.runId);
    if (run === undefined || !this.#tables.writesNow || this.#reachesFurther(lease.runId, commit))
      return undefined;
    const draft = this.#draft(commit, run);
    const before = run.position;
    try {
      const standing = this.#tables.writeNow(() => this.#append(lease, draft, undefined), draft.body.length);
      if (standing === undefined) run.position = before;
      if (standing === commit) this.#committed(lease, commit);
      return standing;
    } catch (error) {
      run.position = before;
      throw error;
    }
  }

  async #appendAndSubmit(lease: Lease, commit: Commit, submissions: readonly Submission[]): Promise<Commit> {
    const drafts = submissions.map((each) => ({ ...each, draft: this.#draft(each.first, each.run) }));
    let creations: readonly Creation[] = [];
    const standing = await this.#appendWith(lease, commit, () => {
      creations = drafts.map(({ run, draft, flight }) => this.#createUnlessBusy(run, draft, flight));
    });
    for (const [index, creation] of creations.entries()) {
      const submission = submissions[index];
      if (submission !== undefined) this.#tellOf(creation, submission.run, submission.first);
    }
    return standing;
  }

  /** `more` is done in the same transaction, if the commit is written by it. */
  async #appendWith(lease: Lease, commit: Commit, more?: () => void): Promise<Commit> {
    const { owned } = this.#tables;
    const known = owned.get(lease.runId);
    let draft = known === undefined ? undefined : this.#draft(commit, known);
    let before: Position | undefined;
    return this.#tables.write({
      bytes: draft?.body.length ?? 0,
      isOneStatement: () => more === undefined && !this.#reachesFurther(lease.runId, commit),
      apply: (version) => {
        const run = this.#tables.owner(lease);
        draft ??= this.#draft(commit, run);
        before = run.position;
        const standing = this.#append(lease, draft, version);
        if (standing === commit) more?.();
        return standing;
      },
      committed: (standing) => {
        if (standing === commit) this.#committed(lease, commit);
      },
      // Most often the file was locked: then nothing has changed.
      undone: () => {
        const run = owned.get(lease.runId);
        if (run !== undefined) run.position = before;
      },
    });
  }

  #committed({ runId }: Lease, commit: Commit): void {
    this.#neighbours.feeds.add(runId, commit);
    this.#tell(commit);
  }

  readNow(runId: RunId): RunHistory | undefined {
    return this.#tables.readNow(() => {
      const run = this.#tables.database.get<RunKey & RunRow>(findRunAndKey, runId);
      const page = run === undefined ? undefined : this.#rows.onlyPage(run);
      if (run === undefined || page === undefined) return undefined;
      return { run: recordOf(run), commits: page.map((row) => this.#rows.decode(run, row)) };
    });
  }

  async *read(runId: RunId, from = 0): AsyncIterable<Commit> {
    for await (const page of this.readPages(runId, from)) yield* page;
  }

  async *readPages(runId: RunId, from = 0): AsyncIterable<Iterable<Commit>> {
    const { run, end } = await this.#tables.read(() => {
      const key = this.#tables.run(runId);
      return { run: key, end: this.#rows.endNumber(key) };
    });
    let next = from;
    for await (const page of this.#rows.texts(run, from, end)) {
      const commits: Commit[] = [];
      for (const row of page) {
        if (row.number !== next) break;
        next++;
        commits.push(this.#rows.decode(run, row));
      }
      yield commits;
    }
    if (next >= end) return;
    await this.#tables.read(() => this.#tables.run(runId));
    throw missing(run, next);
  }

  delete(runId: RunId): Promise<void> {
    return this.#deletion.delete(runId);
  }

  collect({ endedBefore }: { readonly endedBefore: number }): Promise<number> {
    return this.#deletion.collect(endedBefore);
  }

  /** J10. Done at once, so that what the caller changes later is not in it. */
  #draft(commit: Commit, run: Omit<RunKey, "id">): Draft {
    if (commit.steps !== undefined) for (const step of commit.steps) assertOutcome(step);
    const sessions = commit.sessions === undefined ? none : strandsOf(commit.sessions);
    try {
      const body = encodeCommit(commit, run, this.#hash, sessions);
      return { commit, sessions, body };
    } catch (error) {
      const { message } = Fault.from(error);
      throw new Fault("not_json", `commit ${commit.number} of ${run.runId} cannot be stored: ${message}`, {
        cause: error,
      });
    }
  }

  /** S5. */
  #createUnlessBusy(record: RunRecord, draft: Draft, flight: SingleFlight | undefined): Creation {
    if (this.#tables.find(record.runId) !== undefined) return { kind: "exists" };
    const instead = flight === undefined ? undefined : this.#steer(record, flight);
    if (instead !== undefined) return instead;
    const { inbox } = draft.commit;
    if (inbox !== undefined && !this.#neighbours.inbox.isFreeNow(inbox)) return { kind: "taken" };
    this.#create(record, draft);
    return { kind: "created" };
  }

  #steer(record: RunRecord, { steering, always }: SingleFlight): Creation | undefined {
    const { mailbox } = this.#neighbours;
    const told = mailbox.findSubmitted(steering.id);
    if (told !== undefined) return { kind: "steered", runId: told };
    const run = this.#list.findUnfinished(record);
    if (run === undefined) return undefined;
    const { runId, status } = run;
    // One that mail has woken is on its way: nobody is at it yet.
    const isLeft = status === "suspended" || (status === "pending" && mailbox.hasMailNow(runId));
    if (!always && !isLeft) return { kind: "busy", run };
    mailbox.putNow({ ...steering, runId });
    return { kind: "steered", runId };
  }

  #create(record: RunRecord, draft: Draft): void {
    const { database } = this.#tables;
    const start: Position = { number: 0, seq: 0, link: chainStart(record) };
    this.#refuse(draft, start);
    const { runId, agentId, sessionId, tenantId, userId, priority, agentVersion, createdAt } = record;
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
    );
    const { body, commit } = draft;
    const { seq, link } = this.#after(start, draft);
    database.statement(plainInsert).run(id, commit.number, commit.at, seq, link, body);
    this.#reach({ id, runId, agentId, sessionId }, draft);
    this.#rows.addedNow();
  }

  /** J1, J3: the commit that stands under its number. */
  #append(lease: Lease, draft: Draft, version: number | undefined): Commit {
    const { commit } = draft;
    const run = this.#tables.owner(lease);
    run.position ??= this.#rows.position(run);
    if (commit.number === run.position.number) {
      this.#refuse(draft, run.position);
      const next = this.#after(run.position, draft);
      if (this.#insert(run, draft, { next, version })) {
        run.position = next;
        this.#reach(run, draft);
        this.#rows.addedNow();
        return commit;
      }
    }
    // Lost, or taken, or a gap, or held by another store since: the file knows.
    const now = this.#tables.ownerNow(lease);
    const standing = this.#rows.row(now, commit.number);
    if (standing !== undefined) return this.#rows.decode(now, standing);
    const { database, holder } = this.#tables;
    database.run("UPDATE runs SET holder = ? WHERE id = ? AND epoch = ?", holder, now.id, now.epoch);
    now.position = this.#rows.position(now);
    this.#refuse(draft, now.position);
    return this.#append(lease, draft, version);
  }

  #refuse({ commit: { number, events }, sessions }: Draft, position: Position): void {
    if (number !== position.number) {
      throw new Fault("invalid_argument", `commit ${number} leaves a gap: the next is ${position.number}`);
    }
    let next = position.seq;
    for (const { seq } of events ?? []) {
      if (seq !== next) throw new Fault("invalid_argument", `event ${seq} leaves a gap: the next is ${next}`);
      next++;
    }
    if (sessions.length > 0) this.#neighbours.sessions.refuseOrphans(sessions);
  }

  #after(position: Position, { commit, body }: Draft): Position {
    const { number, at, events } = commit;
    const seq = position.seq + (events?.length ?? 0);
    const link = this.#chain.link(position.link, { number, at, nextEvent: seq, body });
    return { number: number + 1, seq, link };
  }

  /** False: the lease is lost, or another store holds the run. */
  #insert(run: OwnedRun, { commit, body }: Draft, { next, version }: Turn): boolean {
    const { database, holder } = this.#tables;
    const { number, at } = commit;
    const { seq, link } = next;
    if (version !== undefined && run.takenAt === version) {
      database.statement(plainInsert).run(run.id, number, at, seq, link, body);
      return true;
    }
    const { changes } = this.#fencedInsert.run(run.id, number, at, seq, link, body, run.epoch, holder);
    if (changes === 0) return false;
    if (version !== undefined) run.takenAt = version;
    return true;
  }

  /** Whether the commit changes more than its own row. */
  #reachesFurther(runId: RunId, commit: Commit): boolean {
    const { events, sessions, mail, inbox, topics, mailThrough, erases } = commit;
    return (
      this.#rows.isCrowded ||
      (mailThrough ?? sessions ?? mail ?? inbox ?? topics ?? erases) !== undefined ||
      endIn(commit) !== undefined ||
      (events !== undefined && this.#neighbours.deltas.isWritten(runId, events))
    );
  }

  #reach(run: RunKey, { commit, sessions }: Draft): void {
    const { events, mail, inbox, topics, mailThrough } = commit;
    const { sessions: talks, mailbox, inbox: boxes, topics: subjects, deltas } = this.#neighbours;
    if (sessions.length > 0) talks.applyNow(sessions);
    if (mail !== undefined) for (const each of mail) mailbox.putNow(each);
    if (inbox !== undefined) boxes.applyNow(inbox, { runId: run.runId, at: commit.at });
    if (topics !== undefined) subjects.applyNow(topics);
    if (mailThrough !== undefined) mailbox.consumeNow(run, mailThrough);
    if (events !== undefined) deltas.removeNow(run, events);
    const end = endIn(commit);
    if (end !== undefined) this.#setEnd(run, end);
    if (commit.erases !== undefined) this.#eraser.markNow(run, commit.erases);
  }

  #setEnd({ id }: RunKey, end: RunEnd | null): void {
    this.#tables.database.run(
      "UPDATE runs SET ended = ?2, ended_at = ?3 WHERE id = ?1",
      id,
      end === null ? null : runStatuses.indexOf(end.status),
      end?.at ?? null,
    );
  }

  #tellOf(creation: Creation, { runId }: RunRecord, first: Commit): void {
    if (creation.kind === "steered") this.#tables.announce(creation.runId);
    if (creation.kind !== "created") return;
    this.#tables.announce(runId);
    this.#tell(first);
  }

  #tell({ mail, inbox, erases }: Commit): void {
    // Who dies or fails here leaves it to the next that opens the file or erases something.
    if (erases !== undefined) this.#eraser.erase().catch(() => undefined);
    if (mail !== undefined) for (const { runId } of mail) this.#tables.announce(runId);
    if (inbox !== undefined && inbox.length > 0) this.#tables.announce();
  }
}

import type { StatementSync } from "node:sqlite";
import {
  assertOutcome,
  chainStart,
  Fault,
  sameCaller,
  type ClaimOptions,
  type Commit,
  type Creation,
  type Hash,
  type Journal,
  type JsonValue,
  type Lease,
  type Rest,
  type RunHistory,
  type RunId,
  type RunPage,
  type RunQuery,
  type RunRecord,
  type SingleFlight,
  type Submission,
} from "../../../kernel/index.ts";
import { endIn } from "../run-end.ts";
import type { Chain } from "./rows/chain.ts";
import type { Collector } from "./retention/collector.ts";
import { encodeCommit } from "./codec/commit-codec.ts";
import { CommitReach, type Draft, type Neighbours } from "./commit-effects.ts";
import { missing, type CommitRows } from "./rows/commit-rows.ts";
import { Deletion } from "./deletion.ts";
import { strandsOf } from "./codec/entry-batch.ts";
import type { Eraser } from "./retention/eraser.ts";
import { bodyInRow, isLarge } from "./rows/large-bodies.ts";
import type { ReleasedRun, SqliteLeases } from "./leases.ts";
import { memberCount } from "./codec/member-count.ts";
import type { RunList } from "./rows/run-list.ts";
import {
  recordOf,
  runColumns,
  runKeyColumns,
  RunState,
  tenantText,
  type RunKey,
  type RunRow,
} from "./db/run-row.ts";
import type { OwnedRun, Position, Tables } from "./db/tables.ts";

export interface SqliteJournalOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly chain: Chain;
  readonly hash: Hash;
  readonly collector: Collector;
  readonly eraser: Eraser;
  readonly leases: SqliteLeases;
  readonly list: RunList;
  readonly neighbours: Neighbours;
}

/** What came of creating a run, and the run if it was claimed along. */
interface Founded {
  readonly creation: Creation;
  readonly owned?: OwnedRun;
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
    ready_at, mail_count, epoch, state, owner, holder)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`;
const intoCommits = "INSERT INTO commits (run, number, at, next_event, link, body)";
const plainInsert = `${intoCommits} VALUES (?, ?, ?, ?, ?, ?)`;
const fencedInsert = `${intoCommits} SELECT ?1, ?2, ?3, ?4, ?5, ?6 FROM runs WHERE id = ?1 AND epoch = ?7 AND holder = ?8`;

export class SqliteJournal implements Journal {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #chain: Chain;
  readonly #hash: Hash;
  readonly #deletion: Deletion;
  readonly #reach: CommitReach;
  readonly #leases: SqliteLeases;
  readonly #neighbours: Neighbours;
  readonly #list: RunList;
  readonly #fencedInsert: StatementSync;

  constructor(options: SqliteJournalOptions) {
    const { tables, rows, chain, hash, collector, eraser, leases, list, neighbours } = options;
    this.#tables = tables;
    this.#rows = rows;
    this.#chain = chain;
    this.#hash = hash;
    this.#deletion = new Deletion({ tables, collector, ...neighbours });
    this.#reach = new CommitReach({ tables, rows, eraser, neighbours });
    this.#leases = leases;
    this.#neighbours = neighbours;
    this.#list = list;
    this.#fencedInsert = tables.database.statement(fencedInsert);
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
    const { creation } = await this.#tables.write({
      bytes: draft.body.length,
      apply: () => this.#createUnlessBusy(record, draft, flight, claim),
      committed: (founded) => this.#tellOf(founded, record, first),
    });
    return creation;
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
    return this.#appendWith(lease, commit, submissions);
  }

  appendAndRelease(
    lease: Lease,
    commit: Commit,
    submissions: readonly Submission[] | undefined,
    rest: Rest,
  ): Promise<Commit> {
    return this.#appendWith(lease, commit, submissions, rest);
  }

  appendNow(lease: Lease, commit: Commit): Commit | undefined {
    const run = this.#tables.owned.get(lease.runId);
    if (run === undefined || !this.#tables.writesNow || this.#reach.goesFurther(lease.runId, commit))
      return undefined;
    const draft = this.#draft(commit, run);
    if (isLarge(draft.body)) return undefined;
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

  /** What comes with the commit is done in the same transaction: what is submitted if it is written by it, the release in any case. */
  async #appendWith(
    lease: Lease,
    commit: Commit,
    submissions?: readonly Submission[],
    rest?: Rest,
  ): Promise<Commit> {
    const { owned } = this.#tables;
    const known = owned.get(lease.runId);
    let draft = known === undefined ? undefined : this.#draft(commit, known);
    const runs = submissions?.map((each) => ({ ...each, draft: this.#draft(each.first, each.run) }));
    let founded: readonly Founded[] | undefined;
    let released: ReleasedRun | undefined;
    let before: Position | undefined;
    return this.#tables.write({
      bytes: draft?.body.length ?? 0,
      isOneStatement: () =>
        runs === undefined &&
        rest === undefined &&
        draft !== undefined &&
        !isLarge(draft.body) &&
        !this.#reach.goesFurther(lease.runId, commit),
      apply: (version) => {
        const run = this.#tables.owner(lease);
        draft ??= this.#draft(commit, run);
        before = run.position;
        // Whoever begins a run here must see that this one has ended: then its end is not left to the release.
        const isLast = rest !== undefined && runs === undefined;
        const standing = this.#append(lease, draft, version, isLast);
        if (standing === commit)
          founded = runs?.map((each) => this.#createUnlessBusy(each.run, each.draft, each.flight));
        if (rest !== undefined) released = this.#release(lease, rest, standing);
        return standing;
      },
      committed: (standing) => {
        if (standing === commit) this.#committed(lease, commit);
        if (released !== undefined) this.#leases.released(lease.runId, released);
        founded?.forEach((each, index) => {
          const submission = submissions?.[index];
          if (submission !== undefined) this.#tellOf(each, submission.run, submission.first);
        });
      },
      // Most often the file was locked: then nothing has changed.
      undone: () => {
        const run = owned.get(lease.runId);
        if (run !== undefined) run.position = before;
      },
    });
  }

  /** How it ended is stored with the release. */
  #release(lease: Lease, rest: Rest, standing: Commit): ReleasedRun {
    const released = this.#leases.leaveNow(this.#tables.owner(lease), rest, endIn(standing) ?? undefined);
    // The commit was taken, so the lease holds; no fault, by which what is written by now would stand.
    if (released === undefined) throw new Error(`${lease.runId} could not be released`);
    return released;
  }

  #committed({ runId }: Lease, commit: Commit): void {
    this.#neighbours.feeds.add(runId, commit);
    this.#reach.tell(commit);
  }

  readNow(runId: RunId): RunHistory | undefined {
    return this.#tables.readNow(() => {
      const begun = this.#beginningOf(runId);
      if (begun !== undefined) return begun;
      const run = this.#tables.database.get<RunKey & RunRow>(findRunAndKey, runId);
      const page = run === undefined ? undefined : this.#rows.onlyPage(run);
      if (run === undefined || page === undefined) return undefined;
      return { run: recordOf(run), commits: page.map((row) => this.#rows.decode(run, row)) };
    });
  }

  /** Of one that was claimed along with its creation, by its owner: nobody else has written since. */
  #beginningOf(runId: RunId): RunHistory | undefined {
    const owned = this.#tables.owned.get(runId);
    const beginning = owned?.beginning;
    if (owned === undefined || beginning === undefined || owned.position?.number !== 1) return undefined;
    owned.beginning = undefined;
    const { run, first } = beginning;
    return { run, commits: ["body" in first ? this.#rows.decode(owned, first) : first] };
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
  #createUnlessBusy(
    record: RunRecord,
    draft: Draft,
    flight: SingleFlight | undefined,
    claim?: ClaimOptions,
  ): Founded {
    if (this.#tables.find(record.runId) !== undefined) return { creation: { kind: "exists" } };
    const instead = flight === undefined ? undefined : this.#steer(record, flight);
    if (instead !== undefined) return { creation: instead };
    const { inbox } = draft.commit;
    if (inbox !== undefined && !this.#neighbours.inbox.isFreeNow(inbox))
      return { creation: { kind: "taken" } };
    const owned = this.#create(record, draft, claim);
    if (owned === undefined) return { creation: { kind: "created" } };
    const { runId, epoch, workerId } = owned;
    return { creation: { kind: "created", lease: { runId, epoch, workerId } }, owned };
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
    if ((!always && !isLeft) || !sameCaller(run, record)) return { kind: "busy", run };
    mailbox.putNow({ ...steering, runId });
    return { kind: "steered", runId };
  }

  #create(record: RunRecord, draft: Draft, claim: ClaimOptions | undefined): OwnedRun | undefined {
    const { database, holder } = this.#tables;
    const start: Position = { number: 0, seq: 0, link: chainStart(record) };
    const footing = this.#reach.refuse(draft, start);
    const { runId, agentId, sessionId, tenantId, userId, priority, agentVersion, createdAt } = record;
    const workerId = claim !== undefined && this.#leases.wouldClaim(record, claim) ? claim.workerId : null;
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
      isClaimed ? RunState.OWNED : RunState.READY,
      workerId,
      isClaimed ? holder : null,
    );
    const { body, commit } = draft;
    const { number, at } = commit;
    const position = this.#after(start, draft);
    const { seq, link } = position;
    database.statement(plainInsert).run(id, number, at, seq, link, bodyInRow(body));
    const key: RunKey = { id, runId, agentId, sessionId };
    this.#reach.applyNow(key, draft, { footing });
    this.#rows.addedNow(key, number, body);
    if (!isClaimed) return undefined;
    const text = { number, at, nextEvent: seq, body };
    const beginning = { run: record, first: isOurs(commit) ? commit : text };
    return { ...key, epoch: 1, workerId, position, beginning };
  }

  /** J1, J3: the commit that stands under its number. */
  #append(lease: Lease, draft: Draft, version: number | undefined, isLast: boolean): Commit {
    const { commit } = draft;
    const run = this.#tables.owner(lease);
    run.position ??= this.#rows.position(run);
    if (commit.number === run.position.number) {
      const footing = this.#reach.refuse(draft, run.position);
      const next = this.#after(run.position, draft);
      if (this.#insert(run, draft, { next, version })) {
        run.position = next;
        this.#reach.applyNow(run, draft, { footing, isLast });
        this.#rows.addedNow(run, commit.number, draft.body);
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
    this.#reach.refuse(draft, now.position);
    return this.#append(lease, draft, version, isLast);
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
      database.statement(plainInsert).run(run.id, number, at, seq, link, bodyInRow(body));
      return true;
    }
    const text = bodyInRow(body);
    const { changes } = this.#fencedInsert.run(run.id, number, at, seq, link, text, run.epoch, holder);
    if (changes === 0) return false;
    if (version !== undefined) run.takenAt = version;
    return true;
  }

  #tellOf({ creation, owned }: Founded, { runId }: RunRecord, first: Commit): void {
    if (creation.kind === "steered") this.#tables.announce(creation.runId);
    if (creation.kind !== "created") return;
    if (owned === undefined) this.#tables.announce(runId);
    else {
      this.#tables.owned.set(runId, owned);
      this.#neighbours.feeds.begin(owned, first);
    }
    this.#reach.tell(first);
  }
}

/** Whether those who submitted the run have nothing of what is in its first commit that they could change. */
function isOurs({ steps, tasks = none }: Commit): boolean {
  if (steps !== undefined) return false;
  return tasks.every(
    (change) =>
      change.type === "create" && isPlain(change.task.input) && memberCount(change.task.metadata) === 0,
  );
}

function isPlain(value: JsonValue): boolean {
  return typeof value !== "object" || value === null;
}

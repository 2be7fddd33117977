import { runStatuses, type Commit, type RunSpend, type SessionId } from "../../../kernel/index.ts";
import type { Draft, Position } from "../codec/commit-draft.ts";
import { isBatch } from "../codec/entry-batch.ts";
import { spendText, standingText, type RunKey } from "../codec/stored-run.ts";
import { approvalChangesIn } from "../approval-changes.ts";
import { endIn, spendIn, type RunEnd } from "../run-end.ts";
import { checkGaps, removesEntries } from "../sql/commit-check.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import { agentsIn, inboxLock, type SqlInbox } from "../sql/inbox.ts";
import { consumeMail, receivingSessions, type SqlMailbox } from "../sql/mailbox.ts";
import type { Collector } from "./retention/collector.ts";
import type { Eraser } from "./retention/eraser.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import type { OpenApprovals } from "./rows/open-approvals.ts";
import { sessionLock } from "../sql/session-rows.ts";
import type { Precondition, SessionChanges } from "../sql/session-changes.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { RunFeeds } from "./tail/run-feed.ts";
import { changeTopics } from "../sql/topics.ts";
import type { SqlUsageTotals } from "../sql/usage-totals.ts";

/** The parts of the store that a commit changes besides its run. */
export interface SiblingTables {
  readonly sessions: SessionChanges;
  readonly mailbox: SqlMailbox;
  readonly inbox: SqlInbox;
  readonly deltas: DeltaBoard;
  readonly feeds: RunFeeds;
  readonly approvals: OpenApprovals;
  readonly usage: SqlUsageTotals;
}

const setStanding = "UPDATE {runs} SET standing = $2 WHERE id = $1";
const setSpent = "UPDATE {runs} SET spent = $2 WHERE id = $1";
const setEnd = "UPDATE {runs} SET ended = $2, ended_at = $3, spent = coalesce($4, spent) WHERE id = $1";
/** In one order, so that two runs that send each other mail do not wait for each other. */
const lockRuns = "SELECT 1 FROM {runs} WHERE run_id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE";

/** What is known about a commit when its effects are applied. */
interface Change {
  /** Id of its row. */
  readonly id: number;
  readonly precondition: Precondition | undefined;
  /** The release, in the same transaction, stores how the run ended. */
  readonly isLast?: boolean;
}

export interface CommitEffectsOptions {
  readonly tables: Tables;
  readonly rows: CommitRows;
  readonly collector: Collector;
  readonly eraser: Eraser;
  readonly siblings: SiblingTables;
}

/** The changes that a commit makes besides its own row, in the same transaction. */
export class CommitEffects {
  readonly #tables: Tables;
  readonly #rows: CommitRows;
  readonly #collector: Collector;
  readonly #eraser: Eraser;
  readonly #siblings: SiblingTables;

  constructor({ tables, rows, collector, eraser, siblings }: CommitEffectsOptions) {
    this.#tables = tables;
    this.#rows = rows;
    this.#collector = collector;
    this.#eraser = eraser;
    this.#siblings = siblings;
  }

  /** Returns the names of the locks that a commit needs, apart from those of the sessions of runs that get its mail. */
  locksOf({ commit, sessions }: Draft, sessionId: SessionId): readonly string[] {
    const { inbox = [] } = commit;
    const ids = sessions.map((change) => (isBatch(change) ? change.first : change).sessionId);
    if (endIn(commit) !== undefined) ids.push(sessionId);
    return [...ids.map(sessionLock), ...agentsIn(inbox).map(inboxLock)];
  }

  /** Locks everything that the commit of a run changes, before any change, so that transactions wait only here. */
  async lock(
    transaction: Transaction,
    run: RunKey,
    { mail }: Commit,
    names: readonly string[],
  ): Promise<void> {
    const others = mail === undefined ? [] : await transaction.do(receivingSessions(mail));
    const all = [...names, ...others.map(sessionLock)];
    if (all.length > 0) await transaction.lock(...all);
    if (mail !== undefined) await transaction.all(lockRuns, [run.runId, ...mail.map(({ runId }) => runId)]);
  }

  /** Rejects with `invalid_argument` for a gap, and with `not_found` for an entry without its parent. */
  async validate(
    transaction: Transaction,
    { commit, sessions }: Draft,
    position: Position,
  ): Promise<Precondition | undefined> {
    checkGaps(commit, position);
    return sessions.length === 0
      ? undefined
      : transaction.do(this.#siblings.sessions.refuseOrphans(sessions));
  }

  /** Applies the changes of a commit whose row was inserted with this id. `isLast`: the release stores how the run ended. */
  async apply(
    transaction: Transaction,
    run: RunKey,
    { commit, sessions, values }: Draft,
    { id, precondition, isLast = false }: Change,
  ): Promise<void> {
    const { number, at, mail, inbox, topics, mailThrough, usage, standing, spent, erases } = commit;
    const siblings = this.#siblings;
    if (values.length > 0) await this.#rows.keep(transaction, run, id, values);
    if (sessions.length > 0)
      await transaction.do(siblings.sessions.apply(sessions, { precondition, at, owner: run }));
    if (mail !== undefined) for (const each of mail) await transaction.do(siblings.mailbox.putNow(each));
    if (inbox !== undefined) await transaction.do(siblings.inbox.applyNow(inbox, { runId: run.runId, at }));
    if (topics !== undefined) await transaction.do(changeTopics(topics));
    if (usage !== undefined) await transaction.do(siblings.usage.addNow(run, usage));
    if (mailThrough !== undefined) await transaction.do(consumeMail(run, mailThrough));
    const questions = approvalChangesIn(commit);
    if (questions !== undefined)
      await siblings.approvals.apply(transaction, { run: run.id, number }, questions);
    const end = endIn(commit);
    if (end !== undefined && !isLast) await this.#setEnd(transaction, run, end, spendIn(commit));
    if (standing !== undefined) await transaction.run(setStanding, run.id, standingText(standing));
    if (spent !== undefined) await transaction.run(setSpent, run.id, spendText(spent));
    if (erases !== undefined) await this.#eraser.mark(transaction, run, erases);
  }

  async #setEnd(
    transaction: Transaction,
    { id, sessionId }: RunKey,
    end: RunEnd | null,
    spent: RunSpend | undefined,
  ): Promise<void> {
    const status = end === null ? null : runStatuses.indexOf(end.status);
    await transaction.run(setEnd, id, status, end?.at ?? null, spendText(spent));
    if (end !== null) await transaction.do(freeHeldRuns(sessionId, this.#tables.tick()));
  }

  /** Starts what follows a commit that is durable. */
  committed(commit: Commit): void {
    // If this fails or the process dies, the next erasure or the next process that opens the store completes it.
    if (commit.erases !== undefined) this.#eraser.erase().catch(() => undefined);
    // Removed entries may have been the last owners of contents.
    if (removesEntries(commit)) this.#collector.collect().catch(() => undefined);
  }
}

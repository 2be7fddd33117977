import { runStatuses, type Commit, type RunId, type RunSpend } from "../../../kernel/index.ts";
import { approvalChangesIn } from "../approval-changes.ts";
import { endIn, spendIn, type RunEnd } from "../run-end.ts";
import { changesMore, checkGaps, removesEntries } from "../sql/commit-check.ts";
import type { Collector } from "./retention/collector.ts";
import type { CommitRows } from "./rows/commit-rows.ts";
import type { OpenApprovals } from "./rows/open-approvals.ts";
import type { DeltaBoard } from "./tail/delta-board.ts";
import type { Draft } from "../codec/commit-draft.ts";
import type { Eraser } from "./retention/eraser.ts";
import { freeHeldRuns } from "../sql/held-runs.ts";
import type { SqlInbox } from "../sql/inbox.ts";
import { consumeMail, type SqlMailbox } from "../sql/mailbox.ts";
import type { RunFeeds } from "./tail/run-feed.ts";
import { spendText, standingText, type RunKey } from "../codec/stored-run.ts";
import type { Precondition, SessionChanges } from "../sql/session-changes.ts";
import type { Position } from "../codec/commit-draft.ts";
import type { Tables } from "./db/tables.ts";
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

const setStanding = "UPDATE runs SET standing = ?2 WHERE id = ?1";
const setSpent = "UPDATE runs SET spent = ?2 WHERE id = ?1";

/** What is known about a commit when its effects are applied. */
interface Change {
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

  /** Throws `invalid_argument` for a gap, and `not_found` for an entry without its parent. Call before any change. */
  validate({ commit, sessions }: Draft, position: Position): Precondition | undefined {
    checkGaps(commit, position);
    return sessions.length === 0
      ? undefined
      : this.#tables.now(this.#siblings.sessions.refuseOrphans(sessions));
  }

  /** Whether the commit changes more than its own row. */
  changesMore(runId: RunId, draft: Draft): boolean {
    const { events } = draft.commit;
    return (
      this.#rows.isCrowded ||
      changesMore(draft) ||
      (events !== undefined && this.#siblings.deltas.isWritten(runId, events))
    );
  }

  /** Applies the changes of a commit whose row was inserted. */
  applyNow(run: RunKey, { commit, sessions }: Draft, { precondition, isLast = false }: Change): void {
    const { events, mail, inbox, topics, mailThrough } = commit;
    const { sessions: talks, mailbox, inbox: boxes, deltas, usage } = this.#siblings;
    const tables = this.#tables;
    if (sessions.length > 0) tables.now(talks.apply(sessions, { precondition, at: commit.at, owner: run }));
    if (mail !== undefined) for (const each of mail) tables.now(mailbox.putNow(each));
    if (inbox !== undefined) tables.now(boxes.applyNow(inbox, { runId: run.runId, at: commit.at }));
    if (topics !== undefined) tables.now(changeTopics(topics));
    if (commit.usage !== undefined) tables.now(usage.addNow(run, commit.usage));
    if (mailThrough !== undefined) tables.now(consumeMail(run, mailThrough));
    if (events !== undefined) deltas.removeNow(run, events);
    const questions = approvalChangesIn(commit);
    if (questions !== undefined) this.#siblings.approvals.applyNow(run.id, questions);
    const end = endIn(commit);
    if (end !== undefined && !isLast) this.#setEnd(run, end, spendIn(commit));
    if (commit.standing !== undefined)
      this.#tables.database.run(setStanding, run.id, standingText(commit.standing));
    if (commit.spent !== undefined) this.#tables.database.run(setSpent, run.id, spendText(commit.spent));
    if (commit.erases !== undefined) this.#eraser.markNow(run, commit.erases);
  }

  #setEnd({ id, sessionId }: RunKey, end: RunEnd | null, spent: RunSpend | undefined): void {
    this.#tables.database.run(
      "UPDATE runs SET ended = ?2, ended_at = ?3, spent = ifnull(?4, spent) WHERE id = ?1",
      id,
      end === null ? null : runStatuses.indexOf(end.status),
      end?.at ?? null,
      spendText(spent),
    );
    if (end !== null) this.#tables.now(freeHeldRuns(sessionId, this.#tables.tick()));
  }

  /** Starts what follows a commit that is durable. */
  committed(commit: Commit): void {
    // If this fails or the process dies, the next erasure or the next process that opens the file completes it.
    if (commit.erases !== undefined) this.#eraser.erase().catch(() => undefined);
    // Removed entries may have been the last owners of contents.
    if (removesEntries(commit)) this.#collector.collect().catch(() => undefined);
  }
}

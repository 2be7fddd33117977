import {
  rootTaskId,
  runStatuses,
  type Commit,
  type RunSpend,
  type SessionId,
  type Submission,
} from "../../../kernel/index.ts";
import { approvalChangesIn } from "../approval-changes.ts";
import type { Draft, Position } from "../codec/commit-draft.ts";
import { isBatch } from "../codec/entry-batch.ts";
import { spendText, standingText, type RunKey } from "../codec/stored-run.ts";
import { endIn, spendIn, type RunEnd } from "../run-end.ts";
import { hostIn } from "../run-host.ts";
import { forgottenMail } from "../forgotten-mail.ts";
import { stateChangeIn } from "../state-changes.ts";
import { mailToSubmitted } from "../submitted-mail.ts";
import { checkGaps, removesEntries } from "./commit-check.ts";
import type { Collector } from "./contents.ts";
import { markErased } from "./erasure.ts";
import { eraseCollected, gateLocks, leaveGates, reenterGates } from "./flow-queue.ts";
import { freeHeldRuns } from "./held-runs.ts";
import { agentsIn, inboxLock, type SqlInbox } from "./inbox.ts";
import { consumeMail, forgetMail, receivingSessions, type SqlMailbox } from "./mailbox.ts";
import type { OpenApprovals } from "./open-approvals.ts";
import { isChanged } from "./run-row.ts";
import { changeState, stateLock } from "./records.ts";
import type { Precondition, SessionChanges } from "./session-changes.ts";
import { sessionLock } from "./session-rows.ts";
import type { SqlTables } from "./tables.ts";
import { changeTopics } from "./topics.ts";
import type { SqlUsageTotals } from "./usage-totals.ts";
import { all, lock, run, type Work } from "./work.ts";

const setStanding = `UPDATE {runs} SET standing = $2, ${isChanged} WHERE id = $1`;
const bindToHost = `UPDATE {runs} SET host = coalesce(host, $2), ${isChanged} WHERE id = $1`;
const setSpent = `UPDATE {runs} SET spent = $2, ${isChanged} WHERE id = $1`;
const setEnd = `UPDATE {runs} SET ended = $2, ended_at = $3, spent = coalesce($4, spent), ${isChanged} WHERE id = $1`;
/**
 * SQL that locks runs. It locks them in one order, so that two runs that send each other mail do not block each
 * other.
 */
const lockRuns = "SELECT 1 FROM {runs} WHERE run_id = ANY($1::text[]) ORDER BY id FOR NO KEY UPDATE";

/** The facts about a commit that are needed to apply its effects. */
interface Change {
  readonly precondition: Precondition | undefined;
  /** Present if the same transaction releases the run and stores how it ended. */
  readonly isLast?: boolean;
}

export interface CommitEffectsOptions {
  readonly tables: SqlTables;
  readonly collector: Collector;
  readonly eraser: { erase(): Promise<void> };
  readonly sessions: SessionChanges;
  readonly mailbox: SqlMailbox;
  readonly inbox: SqlInbox;
  readonly approvals: OpenApprovals;
  readonly usage: SqlUsageTotals;
}

/** The changes that a commit makes besides its own row, in the same transaction. */
export class CommitEffects {
  readonly #options: CommitEffectsOptions;

  constructor(options: CommitEffectsOptions) {
    this.#options = options;
  }

  /** Returns the names of the locks that a commit needs, apart from those of the sessions of runs that get its mail. */
  locksOf({ commit, sessions }: Draft, sessionId: SessionId, owner?: RunKey): readonly string[] {
    const { inbox = [] } = commit;
    const ids = sessions.map((change) => (isBatch(change) ? change.first : change).sessionId);
    if (endIn(commit) !== undefined) ids.push(sessionId);
    const gates = owner !== undefined && endIn(commit) !== undefined ? gateLocks(owner) : [];
    const state = owner && stateChangeIn(commit, owner);
    const states = state === undefined ? [] : [stateLock(state)];
    return [...ids.map(sessionLock), ...agentsIn(inbox).map(inboxLock), ...gates, ...states];
  }

  /** Locks everything that the commit of a run changes, before any change, so that transactions wait only here. */
  *lock({ runId }: RunKey, { mail }: Commit, names: readonly string[]): Work<void> {
    const others = mail === undefined ? [] : yield* receivingSessions(mail);
    yield* lock(...names, ...others.map(sessionLock));
    if (mail !== undefined) yield* all(lockRuns, [runId, ...mail.map((each) => each.runId)]);
  }

  /** Throws `invalid_argument` for a gap, and `not_found` for an entry without its parent. Call before any change. */
  *validate({ commit, sessions }: Draft, position: Position): Work<Precondition | undefined> {
    checkGaps(commit, position);
    return sessions.length === 0 ? undefined : yield* this.#options.sessions.refuseOrphans(sessions);
  }

  /** Applies the changes of a commit after its row was inserted. */
  *apply(owner: RunKey, { commit, sessions }: Draft, { precondition, isLast = false }: Change): Work<void> {
    const { number, at, mail, inbox, topics, mailThrough, usage, standing, spent, erases } = commit;
    const { id, runId } = owner;
    const parts = this.#options;
    if (sessions.length > 0) yield* parts.sessions.apply(sessions, { precondition, at, owner });
    if (mail !== undefined) for (const each of mail) yield* parts.mailbox.putNow(each);
    if (inbox !== undefined) yield* parts.inbox.applyNow(inbox, { runId, at });
    if (topics !== undefined) yield* changeTopics(topics);
    if (usage !== undefined) yield* parts.usage.addNow(owner, commit);
    for (const mailId of forgottenMail(commit)) yield* forgetMail(owner, mailId);
    if (mailThrough !== undefined) yield* consumeMail(owner, mailThrough);
    const questions = approvalChangesIn(commit);
    if (questions !== undefined) yield* parts.approvals.apply({ run: id, number }, questions);
    const end = endIn(commit);
    if (end !== undefined && !isLast) yield* this.#setEnd(owner, end, spendIn(commit));
    const state = stateChangeIn(commit, owner);
    if (state !== undefined) yield* changeState(state);
    const host = hostIn(commit);
    if (host !== undefined) yield* run(bindToHost, id, host);
    if (standing !== undefined) yield* run(setStanding, id, standingText(standing));
    if (spent !== undefined) yield* run(setSpent, id, spendText(spent));
    if (erases !== undefined) yield* markErased(owner, erases);
    if (erases?.some(({ taskId }) => taskId === rootTaskId) === true) yield* eraseCollected(owner);
  }

  /** P6: delivers the mail of a commit to the runs that its submissions have created. */
  *deliver(commit: Commit, submissions: readonly Submission[]): Work<void> {
    for (const mail of mailToSubmitted(commit, submissions)) yield* this.#options.mailbox.putNow(mail);
  }

  *#setEnd(owner: RunKey, end: RunEnd | null, spent: RunSpend | undefined): Work<void> {
    const { id, sessionId } = owner;
    const status = end === null ? null : runStatuses.indexOf(end.status);
    yield* run(setEnd, id, status, end?.at ?? null, spendText(spent));
    if (end !== null) yield* freeHeldRuns(sessionId, this.#options.tables.tick());
    yield* end === null ? reenterGates(owner) : leaveGates(owner);
  }

  /** Starts the background work that follows a durable commit, such as erasures. */
  committed(commit: Commit): void {
    // If this fails or the process dies, the next erasure or the next process that opens the store completes it.
    if (commit.erases !== undefined) this.#options.eraser.erase().catch(() => undefined);
    // Removed entries may have been the last owners of contents.
    if (removesEntries(commit)) this.#options.collector.collect().catch(() => undefined);
  }
}

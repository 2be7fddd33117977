import {
  missingRun,
  type ApprovalPage,
  type Delta,
  type Event,
  type PendingApproval,
  type RunId,
  type TailOptions,
} from "../../kernel/index.ts";
import type { RunStore } from "./run-store.ts";

/** The part of a run handle that is needed to wait for questions. */
interface WatchedRun {
  readonly runId: RunId;
  readonly store: RunStore;
  tail(options: TailOptions): AsyncIterable<Event | Delta>;
  /** Whether the ended run was resumed after the event before `next`. Waits until its owner has handled such commands. */
  isResumed(next: number): boolean | Promise<boolean>;
}

/** Events after which a run may only wait. */
const turningPoints = [
  "approval_request",
  "task_suspend",
  "seat_pause",
  "task_end",
  "run_resume",
  "run_end",
  "usage_corrected",
] as const;

/** K4: returns the open questions of a run. Costs O(open questions of the run). */
export async function readPendingApprovals({
  store,
  runId,
}: Pick<WatchedRun, "store" | "runId">): Promise<readonly PendingApproval[]> {
  const pending: PendingApproval[] = [];
  let after: string | null = null;
  do {
    const { approvals, next }: ApprovalPage = await store.journal.approvals({
      runId,
      limit: 500,
      ...(after !== null && { after }),
    });
    pending.push(...approvals);
    after = next;
  } while (after !== null);
  if (pending.length === 0 && (await store.journal.find(runId)) === undefined) throw missingRun(runId);
  return pending;
}

/**
 * Resolves with the pending questions when every live task of the run waits and one of them waits for a person, or with
 * an empty list when the run has ended.
 */
export async function untilPersonIsNeeded(run: WatchedRun): Promise<readonly PendingApproval[]> {
  const reader = new QuestionReader(run);
  do {
    const pending = await reader.read();
    if (pending.length > 0 || reader.isCompleted) return pending;
    // The run was resumed, perhaps by a command that its owner has not read yet.
  } while (await run.isResumed(reader.next));
  return [];
}

class QuestionReader {
  readonly #run: WatchedRun;
  /** Sequence number (`seq`) that follows that of the last event that was read. */
  next = 0;
  /** A completed run cannot be resumed. */
  isCompleted = false;

  constructor(run: WatchedRun) {
    this.#run = run;
  }

  /** Returns the next questions, or an empty list at the end of the run. */
  async read(): Promise<readonly PendingApproval[]> {
    const { store, runId } = this.#run;
    for await (const event of this.#run.tail({ fromSeq: this.next, types: turningPoints })) {
      if ("seq" in event) this.next = event.seq + 1;
      if (event.type === "run_end") {
        this.isCompleted = event.data.status === "completed";
        continue;
      }
      const summary = await store.journal.summary(runId);
      if (summary?.status !== "waiting" || !summary.waitsFor.includes("person")) continue;
      const pending = await this.#unanswered();
      if (pending.length > 0) return pending;
    }
    return [];
  }

  /**
   * Returns the open questions without an answer in the mailbox. An answer stays there until the owner of the run
   * has read it.
   */
  async #unanswered(): Promise<readonly PendingApproval[]> {
    const { store, runId } = this.#run;
    // The mailbox is read first: the owner removes the mail with the commit that holds the decision.
    const mail = await store.mailbox.read(runId);
    const answered = new Set(mail.map(({ body }) => body.type === "approval" && body.approvalId));
    const pending = await readPendingApprovals(this.#run);
    return pending.filter(({ approvalId }) => !answered.has(approvalId));
  }
}

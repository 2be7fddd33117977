import {
  type AgentId,
  type Commit,
  type Headcount,
  type Ledger,
  type LedgerCommand,
  type RunSpend,
  type RunStanding,
  type Spend,
  type TaskId,
  type TaskOutcome,
  type Usage,
  type WaitCause,
  rootTaskId as root,
  waitCauses,
} from "../../kernel/index.ts";
import type { HeldCapShare } from "./held-cap-share.ts";
import { spendOf } from "./run-spend.ts";
import { RunUsage, type TakenUsage } from "./run-usage.ts";

/** The part of a run's state from which its standing (status and reason to wait) is computed. */
interface StandingRun {
  readonly liveTasks: number;
  readonly paused: boolean;
  readonly isCrashLoop: boolean;
  readonly isDrivenAgain: boolean;
  readonly headcount: Headcount;
  readonly tasks: ReadonlyMap<
    TaskId,
    { readonly outcome: TaskOutcome | null; readonly waitsFor: readonly WaitCause[] }
  >;
}

/** The commands after which open calls may need a smaller cap share. */
const freeing: ReadonlySet<LedgerCommand["type"]> = new Set(["settle", "lose", "refund", "crash", "correct"]);

const nothing: readonly WaitCause[] = [];
const running: RunStanding = { status: "running", waitsFor: nothing };
const paused: RunStanding = { status: "paused", waitsFor: nothing };
const crashLoop: RunStanding = { status: "paused", waitsFor: ["crash_loop"] };

/**
 * K1: computes the standing of a run. A run waits if each of its live tasks waits or has no seat. Costs O(tasks
 * that have not ended).
 */
function standingOf(run: StandingRun): RunStanding {
  if (run.liveTasks === 0) return running;
  if (run.paused) return run.isCrashLoop ? crashLoop : paused;
  if (run.isDrivenAgain) return running;
  const found = new Set<WaitCause>();
  const { tasks } = run.headcount;
  for (const taskId in tasks) {
    const task = run.tasks.get(taskId as TaskId);
    const seat = tasks[taskId as TaskId];
    if (task === undefined || task.outcome !== null || seat === undefined) continue;
    if (seat.heldFor !== undefined && seat.status === "paused") found.add("person");
    else if (seat.status === "pending" || seat.status === "paused") found.add("seat");
    else if (seat.status === "pausing" || !seat.idle) return running;
    else for (const cause of task.waitsFor) found.add(cause);
  }
  return { status: "waiting", waitsFor: waitCauses.filter((cause) => found.has(cause)) };
}

function isSameStanding(one: RunStanding, other: RunStanding): boolean {
  return one.status === other.status && one.waitsFor.join() === other.waitsFor.join();
}

/** The part of a run's state from which the next commit gets its standing and its spending. */
interface TotalsRun extends StandingRun {
  readonly ledger: Ledger;
  readonly capShare: HeldCapShare;
  readonly usage: Usage;
  readonly ended: boolean;
  task(taskId: TaskId): {
    readonly record: { readonly agentId: AgentId };
    readonly clock: { readonly startedAt: number };
  };
}

/**
 * The standing and the spending that the commits of a run contain. A commit contains only what has changed since
 * earlier ones.
 */
export class RecordedTotals {
  readonly #run: TotalsRun;
  readonly #usage: RunUsage;
  /** K1: the last standing in a commit. */
  #standing: RunStanding = running;
  /** K3: the amount that the root's account had spent when a commit last contained it. */
  #spend: Spend | undefined;

  constructor(run: TotalsRun) {
    this.#run = run;
    this.#usage = new RunUsage(run.ledger, run.capShare);
  }

  /** Updates the totals from a stored commit. Call it after the commit's ledger commands were applied. */
  note({ standing, usage, holds, spent }: Commit): void {
    if (standing !== undefined) this.#standing = standing;
    if (usage !== undefined) this.#usage.note(usage, holds);
    if (spent !== undefined) this.#spend = this.#run.ledger.accounts[root]?.spent;
  }

  /** Whether the run was running at the last commit. */
  get isRunning(): boolean {
    return this.#standing.status === "running";
  }

  /** K1: returns the standing of the run if it has changed since the last call, and then counts it as recorded. */
  takeStanding(): RunStanding | undefined {
    const standing = standingOf(this.#run);
    if (isSameStanding(standing, this.#standing)) return undefined;
    return (this.#standing = standing);
  }

  /**
   * K3: returns what the run has used, if this has changed since the last call. It does so only when the run does
   * not run, or when the commit adds usage to the totals, so that the row of the run and the totals agree. In an
   * ended run, only a correction changes it (B3).
   */
  takeSpend(commands: readonly LedgerCommand[] | undefined, hasUsage: boolean): RunSpend | undefined {
    const isRunning = this.#standing.status === "running" && !hasUsage;
    if (this.#run.ended ? commands?.some(({ type }) => type === "correct") !== true : isRunning)
      return undefined;
    const spent = this.#run.ledger.accounts[root]?.spent;
    const isNothing = spent === undefined || (spent.tokens === 0 && spent.turns === 0);
    if ((isNothing && !this.#run.ended) || spent === this.#spend) return undefined;
    this.#spend = spent;
    return spendOf(this.#run);
  }

  /**
   * U1: returns what the run has spent since the last call, in one of these cases: the run does not run after this
   * commit; the commit ends a call of a live program (`isMetered`); or the run has a cap share, and the commit
   * frees a part of it with these commands, or a call that drew was abandoned (U8). `failedAt` is present if the
   * commit ends the run as failed.
   */
  takeUsage(
    commands: readonly LedgerCommand[] | undefined,
    isReturnDue: boolean,
    failedAt: number | undefined,
    isMetered: boolean,
  ): TakenUsage | undefined {
    const { ended, capShare } = this.#run;
    if (!ended && !isMetered && this.#standing.status === "running")
      if (!capShare.mayExist || !(isReturnDue || commands?.some(({ type }) => freeing.has(type)) === true))
        return undefined;
    return this.#usage.take({ ended, failedAt, isMetered }, () => {
      const { record, clock } = this.#run.task(root);
      return { agentId: record.agentId, createdAt: clock.startedAt };
    });
  }
}

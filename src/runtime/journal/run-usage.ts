import {
  boundOf,
  clearTally,
  noUsageDelta,
  usageNameOf,
  utcDay,
  utcHourOfDay,
  type AgentId,
  type Commit,
  type Ledger,
  type UsageDelta,
} from "../../kernel/index.ts";
import type { HeldCapShare } from "./held-cap-share.ts";

/** Facts about a run that are needed to count its usage. */
interface UsageRoot {
  /** The root agent. */
  readonly agentId: AgentId;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/**
 * The end of a run, if it has ended. `failedAt` is present in the commit that ends it as failed, in epoch
 * milliseconds.
 */
export interface UsageEnd {
  readonly ended: boolean;
  readonly failedAt?: number | undefined;
  /** Whether the commit ends a call of `ctx.metered`. */
  readonly isMetered?: boolean;
}

/** The usage and the cap share that a commit contains. */
export type TakenUsage = Required<Pick<Commit, "usage">> & Pick<Commit, "holds">;

/** U1: tracks which part of a run's usage is already in its commits. */
export class RunUsage {
  readonly #ledger: Ledger;
  readonly #capShare: HeldCapShare;
  /** The row in which a commit has counted the run. */
  #counted: Pick<UsageDelta, "agent" | "model"> | undefined;

  constructor(ledger: Ledger, capShare: HeldCapShare) {
    this.#ledger = ledger;
    this.#capShare = capShare;
  }

  /** A commit holds this usage. */
  note(usage: readonly UsageDelta[], holds?: Commit["holds"]): void {
    this.#counted ??= usage.find(({ runs }) => runs > 0);
    clearTally(this.#ledger);
    this.#capShare.giveBack(holds);
  }

  /**
   * Returns what the run spent since the last call, for a commit that suspends, pauses or ends the run, or settles
   * a call of a run with a cap share or of a live program. Otherwise it returns nothing while calls are in flight,
   * as after a pause: the commit that records the last of these calls contains their usage. The first usage counts
   * the run; an ended run is always counted. A run that ends as failed is counted as such for the same agent and
   * model. The list is empty if the run only returns a part of its cap share (U8).
   */
  take({ ended, failedAt, isMetered = false }: UsageEnd, root: () => UsageRoot): TakenUsage | undefined {
    const { open, tally } = this.#ledger;
    const { mayExist } = this.#capShare;
    if (open.length > 0 && !mayExist && !isMetered) return undefined;
    const rows = Object.values(tally);
    const isCountedNow = this.#counted === undefined && (ended || rows.length > 0);
    if (rows.length === 0 && !isCountedNow && failedAt === undefined && !mayExist) return undefined;
    const usage = isCountedNow ? withRun(rows, root()) : rows;
    const counted = this.#counted ?? usage.find(({ runs }) => runs > 0);
    if (failedAt !== undefined && counted !== undefined) usage.push(failedRun(counted, failedAt));
    const holds = isMetered && !mayExist ? undefined : heldBy(this.#ledger, this.#capShare);
    this.note(usage, holds);
    return holds === undefined ? { usage } : { usage, holds };
  }
}

/** Returns the amounts that open and waiting reservations need, by the key of their cap share. */
function heldBy({ open, waiting }: Ledger, capShare: HeldCapShare): Commit["holds"] {
  if (open.length === 0 && waiting.length === 0) return undefined;
  const holds: Record<string, number> = {};
  const add = (key: string | undefined, amount: number): void => {
    if (key !== undefined && amount > 0) holds[key] = (holds[key] ?? 0) + amount;
  };
  for (const each of open) add(capShare.keyOf(each), each.held.nanoUsd);
  for (const each of waiting) add(capShare.keyOf(each), boundOf(each, each.output.maxTokens).nanoUsd);
  return holds;
}

/** Counts the run in the first row of its root agent, or in a separate row if that agent has called no model. */
function withRun(rows: readonly UsageDelta[], { agentId, createdAt }: UsageRoot): UsageDelta[] {
  const agent = usageNameOf(agentId);
  const index = rows.findIndex((row) => row.agent === agent);
  if (index >= 0) return rows.map((row, place) => (place === index ? { ...row, runs: 1 } : row));
  return [...rows, { ...noUsageDelta, ...hourOf(createdAt), agent, model: null, runs: 1 }];
}

function failedRun({ agent, model }: Pick<UsageDelta, "agent" | "model">, at: number): UsageDelta {
  return { ...noUsageDelta, ...hourOf(at), agent, model, failedRuns: 1 };
}

function hourOf(at: number): Pick<UsageDelta, "day" | "hour"> {
  return { day: utcDay(at), hour: utcHourOfDay(at) };
}

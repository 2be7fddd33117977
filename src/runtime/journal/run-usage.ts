import {
  agentNameOf,
  clearTally,
  noUsageDelta,
  utcDay,
  type AgentId,
  type Ledger,
  type UsageDelta,
} from "../../kernel/index.ts";
import type { HeldAllotment } from "./held-allotment.ts";

/** The root agent of a run, and the time at which the run was created. */
interface UsageRoot {
  readonly agentId: AgentId;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

/** U1: which part of a run's usage its commits hold. */
export class RunUsage {
  readonly #ledger: Ledger;
  readonly #allotment: HeldAllotment;
  /** A commit has counted the run. */
  #isCounted = false;

  constructor(ledger: Ledger, allotment: HeldAllotment) {
    this.#ledger = ledger;
    this.#allotment = allotment;
  }

  /** A commit holds this usage. */
  note(usage: readonly UsageDelta[]): void {
    this.#isCounted ||= usage.some(({ runs }) => runs > 0);
    clearTally(this.#ledger);
    this.#allotment.giveBack();
  }

  /**
   * Returns what the run spent since the last call, for the commit that suspends, pauses or ends the run. While calls
   * are in flight, as in a run that was just paused, nothing is returned: the commit that records the last of them holds
   * their usage. The first usage counts the run; an ended run is always counted. The list is empty if the run only
   * returns its allotment (U8).
   */
  take(hasEnded: boolean, root: () => UsageRoot): UsageDelta[] | undefined {
    const { open, tally } = this.#ledger;
    if (open.length > 0) return undefined;
    const rows = Object.values(tally);
    const isCountedNow = !this.#isCounted && (hasEnded || rows.length > 0);
    if (rows.length === 0 && !isCountedNow && !this.#allotment.mayExist) return undefined;
    const usage = isCountedNow ? withRun(rows, root()) : rows;
    this.note(usage);
    return usage;
  }
}

/** Counts the run in the first row of its root agent, or in a row of its own if that agent has called no model. */
function withRun(rows: readonly UsageDelta[], { agentId, createdAt }: UsageRoot): UsageDelta[] {
  const agent = agentNameOf(agentId);
  const index = rows.findIndex((row) => row.agent === agent);
  if (index >= 0) return rows.map((row, place) => (place === index ? { ...row, runs: 1 } : row));
  return [...rows, { ...noUsageDelta, day: utcDay(createdAt), agent, model: null, runs: 1 }];
}

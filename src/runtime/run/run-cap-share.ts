import {
  addDays,
  capShareKey,
  boundOf,
  capsAgents,
  capScopes,
  firstOfNextMonth,
  fromNanoUsd,
  isPriced,
  largestOutput,
  type CapLimits,
  type CapUse,
  type ExhaustedCap,
  type Exhaustion,
  type ReserveCommand,
  type RunRecord,
  type UnknownPrice,
} from "../../kernel/index.ts";
import type { RunLog } from "../journal/run-log.ts";
import type { RunState } from "../journal/run-state.ts";
import type { CoveredCall, DrawnCapShare, TaskCapShare } from "../task/task-host.ts";

export interface RunCapShareOptions {
  readonly log: RunLog;
  readonly state: RunState;
  readonly caps: CapLimits;
  readonly unknownPrice: UnknownPrice;
  readonly record: Pick<RunRecord, "tenantId" | "userId">;
}

/** B7: the cap share of one run. Before the ledger decides about a reservation, the cap share must cover it. */
export class RunCapShare implements TaskCapShare {
  readonly #log: RunLog;
  readonly #state: RunState;
  readonly #caps: CapLimits;
  readonly #unknownPrice: UnknownPrice;
  readonly #record: Pick<RunRecord, "tenantId" | "userId">;

  constructor({ log, state, caps, unknownPrice, record }: RunCapShareOptions) {
    this.#log = log;
    this.#state = state;
    this.#caps = caps;
    this.#unknownPrice = unknownPrice;
    this.#record = record;
    state.capShare.isByAgent = capsAgents(caps);
    // The last owner may have died after it drew.
    state.capShare.expect();
  }

  cover(command: ReserveCommand, mayClamp: boolean): CoveredCall {
    if (!isPriced(command)) return this.#unknownPrice === "refuse" ? { kind: "unpriced" } : { kind: "whole" };
    const key = this.#keyOf(command);
    const free = this.#state.capShare.amount(key) - this.#used(key);
    const { maxTokens } = command.output;
    if (boundOf(command, maxTokens).nanoUsd <= free) return { kind: "whole" };
    const outputTokens = mayClamp ? outputThatFits(command, free) : undefined;
    return outputTokens === undefined ? { kind: "short" } : { kind: "clamped", outputTokens };
  }

  async draw(command: ReserveCommand, mayWait: boolean): Promise<DrawnCapShare> {
    const { capShare } = this.#state;
    const { day = "" } = command;
    const key = this.#keyOf(command);
    const agent = capShare.agentOf(command);
    const { maxTokens, minTokens = 1 } = command.output;
    for (;;) {
      const used = this.#used(key);
      const least = boundOf(command, Math.min(minTokens, maxTokens)).nanoUsd;
      const whole = boundOf(command, maxTokens).nanoUsd;
      const { returns } = capShare;
      capShare.expect();
      const caps = this.#caps;
      const amounts = { need: used + least, want: used + whole };
      const outcome = await this.#log.draw({
        day,
        ...(agent !== undefined && { agent }),
        ...amounts,
        caps,
        mayWait,
      });
      // A commit returned the cap share meanwhile, for example because the run was paused.
      if (returns !== capShare.returns) continue;
      if (outcome.kind === "held") {
        const { amount, tight } = outcome;
        capShare.set(key, amount);
        return { kind: "held", tight: tight === null ? null : this.#exhaustion(command, tight, whole) };
      }
      // A call of the run ended meanwhile, so that less is needed.
      if (this.#used(key) < used) continue;
      const { kind, tight } = outcome;
      return { kind, tight: this.#exhaustion(command, tight, kind === "waits" ? whole : least) };
    }
  }

  returnUnused(): void {
    this.#log.returnUnused();
  }

  #keyOf(command: ReserveCommand): string {
    return this.#state.capShare.keyOf(command) ?? "";
  }

  /** Returns the amount that the run has spent, reserved or requested of a cap share since it last returned it. */
  #used(key: string): number {
    const { capShare, ledger } = this.#state;
    let used = this.#spent(key);
    for (const each of ledger.open) if (capShare.keyOf(each) === key) used += each.held.nanoUsd;
    for (const each of ledger.waiting)
      if (capShare.keyOf(each) === key) used += boundOf(each, each.output.maxTokens).nanoUsd;
    return used;
  }

  /**
   * Returns the amount that is spent of a cap share. A correction that lowers the amount is ignored here, because
   * the totals of the store do not contain it yet.
   */
  #spent(key: string): number {
    const { capShare, ledger } = this.#state;
    const isMeant = ({ day, agent }: { readonly day: string; readonly agent: string }): boolean =>
      capShareKey(day, capShare.isByAgent ? agent : undefined) === key;
    const rows = Object.values(ledger.tally);
    return Math.max(
      0,
      rows.reduce((sum, row) => sum + (isMeant(row) ? row.nanoUsd : 0), 0),
    );
  }

  #exhaustion(
    command: ReserveCommand,
    use: CapUse,
    needed: number,
  ): Exhaustion & { readonly cap: ExhaustedCap } {
    const { taskId, day = "" } = command;
    const { name, limit } = use;
    const { of, per } = capScopes[name];
    const key = this.#keyOf(command);
    const spent = use.spent + this.#spent(key);
    const held = use.held + this.#used(key) - this.#spent(key);
    const agent = of === "agent" ? this.#state.capShare.agentOf(command) : undefined;
    const cap = {
      name,
      tenantId: this.#record.tenantId,
      userId: this.#record.userId,
      day,
      ...(agent !== undefined && { agent }),
      limitUsd: fromNanoUsd(limit),
      spentUsd: fromNanoUsd(spent),
      heldUsd: fromNanoUsd(held),
      neededUsd: fromNanoUsd(needed),
      resetsAt: `${per === "day" ? addDays(day, 1) : firstOfNextMonth(day)}T00:00:00.000Z`,
    };
    const used = fromNanoUsd(spent + held + needed);
    return { taskId, dimension: "costUsd", limit: cap.limitUsd, used, cap };
  }
}

/** Returns the largest output limit whose cost is at most `free`. `undefined` if even the lowest limit costs more. */
function outputThatFits(command: ReserveCommand, free: number): number | undefined {
  const { maxTokens, minTokens = 1 } = command.output;
  const fits = (outputTokens: number): boolean => boundOf(command, outputTokens).nanoUsd <= free;
  const minimum = Math.min(minTokens, maxTokens);
  return fits(minimum) ? largestOutput(fits, minimum, maxTokens) : undefined;
}

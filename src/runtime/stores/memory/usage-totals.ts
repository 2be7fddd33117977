import {
  addUsageDelta,
  decideDraw,
  likelyNanoUsd,
  type CapName,
  type CapUse,
  type Commit,
  type DrawOutcome,
  type DrawRequest,
  type Lease,
  type RunId,
  type RunRecord,
  type UsageDelta,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
  type UsageTotals,
} from "../../../kernel/index.ts";
import { capsInForce, oldestDay, usageRange, usageRow, type LikelyAmount } from "../usage-check.ts";
import type { Tables } from "./tables.ts";

type Owner = Pick<RunRecord, "tenantId" | "userId">;

/** A total with the tenant and the user to whom it belongs. */
type Total = UsageDelta & Owner;

/** B7: what a run holds for a day. */
interface Allotment extends Owner {
  readonly day: string;
  readonly runId: RunId;
  readonly amount: number;
}

export class MemoryUsageTotals implements UsageTotals {
  readonly #tables: Tables;
  readonly #totals = new Map<string, Total>();
  #allotments: readonly Allotment[] = [];

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    const { day, caps } = request;
    const { runId, tenantId, userId } = this.#tables.owned(lease).record;
    const isOwn = (each: Allotment): boolean => each.runId === runId && each.day === day;
    const uses = capsInForce(caps).map(([name, limit]): CapUse => {
      const isMeant = (each: Owner & { readonly day: string }): boolean =>
        each.day === day && isUnder(name, each, { tenantId, userId });
      return {
        name,
        limit,
        spent: sumOf([...this.#totals.values()].filter(isMeant).map(({ nanoUsd }) => nanoUsd)),
        held: sumOf(
          this.#allotments.filter((each) => isMeant(each) && !isOwn(each)).map(({ amount }) => amount),
        ),
      };
    });
    const own = this.#allotments.find(isOwn)?.amount ?? 0;
    const outcome = decideDraw(own, request, uses);
    if (outcome.kind === "held" && outcome.amount > own) {
      const kept = this.#allotments.filter((each) => !isOwn(each) && each.day >= oldestDay(day));
      this.#allotments = [...kept, { day, runId, tenantId, userId, amount: outcome.amount }];
    }
    return outcome;
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { by, from, to, tenantId, userId } = usageRange(query);
    const groups = new Map<string, Total & LikelyAmount>();
    for (const total of this.#totals.values()) {
      if (total.day < from || total.day > to) continue;
      if (tenantId !== undefined && total.tenantId !== tenantId) continue;
      if (userId !== undefined && total.userId !== userId) continue;
      const group = JSON.stringify(by === "user" ? [total.tenantId, total.userId] : total[by]);
      const sum = groups.get(group);
      const likely = likelyOf(total);
      groups.set(
        group,
        sum === undefined
          ? { ...total, likelyNanoUsd: likely }
          : {
              ...addUsageDelta(sum, total),
              likelyNanoUsd: sum.likelyNanoUsd + likely,
              tenantId: sum.tenantId,
              userId: sum.userId,
            },
      );
    }
    return [...groups.values()]
      .toSorted(
        (one, other) => compare(keyOf(one, by), keyOf(other, by)) || compare(one.tenantId, other.tenantId),
      )
      .map((total) =>
        usageRow({ key: keyOf(total, by), ...(by === "user" && { tenantId: total.tenantId }) }, total),
      );
  }

  /** Adds the usage of a commit. The journal calls this together with the other changes of the commit. */
  addNow(
    { runId, tenantId, userId }: RunRecord,
    usage: readonly UsageDelta[],
    holds: Commit["holds"] = {},
  ): void {
    if (this.#allotments.length > 0)
      this.#allotments = this.#allotments.flatMap((each) => {
        if (each.runId !== runId) return [each];
        const amount = Math.min(each.amount, holds[each.day] ?? 0);
        return amount > 0 ? [{ ...each, amount }] : [];
      });
    for (const delta of usage) {
      const { day, agent, model } = delta;
      const key = JSON.stringify([day, tenantId, userId, agent, model]);
      const total = this.#totals.get(key);
      this.#totals.set(key, {
        ...(total === undefined ? delta : addUsageDelta(total, delta)),
        tenantId,
        userId,
      });
    }
  }
}

function likelyOf({ turns, nanoUsd, lostCalls, lostNanoUsd }: Total): number {
  const reported = { calls: turns, nanoUsd: nanoUsd - lostNanoUsd };
  return likelyNanoUsd(reported, { calls: lostCalls, nanoUsd: lostNanoUsd });
}

function keyOf(total: Total, by: UsageDimension): string | null {
  return by === "user" ? total.userId : total[by];
}

/** Compares by code units; `null` comes first. */
function compare(one: string | null, other: string | null): number {
  if (one === other) return 0;
  if (one === null) return -1;
  return other === null || one > other ? 1 : -1;
}

/** Whether usage of `one` counts for the cap of `run`. */
function isUnder(cap: CapName, one: Owner, run: Owner): boolean {
  if (cap === "perDayUsd") return true;
  return one.tenantId === run.tenantId && (cap === "perTenantPerDayUsd" || one.userId === run.userId);
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((all, each) => all + each, 0);
}

import {
  addUsageDelta,
  type RunRecord,
  type UsageDelta,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
  type UsageTotals,
} from "../../../kernel/index.ts";
import { usageRange, usageRow } from "../usage-check.ts";

type Owner = Pick<RunRecord, "tenantId" | "userId">;

/** A total with the tenant and the user to whom it belongs. */
type Total = UsageDelta & Owner;

export class MemoryUsageTotals implements UsageTotals {
  readonly #totals = new Map<string, Total>();

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { by, from, to, tenantId, userId } = usageRange(query);
    const groups = new Map<string, Total>();
    for (const total of this.#totals.values()) {
      if (total.day < from || total.day > to) continue;
      if (tenantId !== undefined && total.tenantId !== tenantId) continue;
      if (userId !== undefined && total.userId !== userId) continue;
      const group = JSON.stringify(by === "user" ? [total.tenantId, total.userId] : total[by]);
      const sum = groups.get(group);
      groups.set(
        group,
        sum === undefined
          ? total
          : { ...addUsageDelta(sum, total), tenantId: sum.tenantId, userId: sum.userId },
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
  addNow({ tenantId, userId }: Owner, usage: readonly UsageDelta[]): void {
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

function keyOf(total: Total, by: UsageDimension): string | null {
  return by === "user" ? total.userId : total[by];
}

/** Compares by code units; `null` comes first. */
function compare(one: string | null, other: string | null): number {
  if (one === other) return 0;
  if (one === null) return -1;
  return other === null || one > other ? 1 : -1;
}

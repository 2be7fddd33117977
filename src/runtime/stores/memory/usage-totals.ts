import {
  addUsageDelta,
  capShareKey,
  capScopes,
  decideDraw,
  hourText,
  latencyList,
  likelyNanoUsd,
  type CapScope,
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
  type UsageStep,
  type UsageTotals,
} from "../../../kernel/index.ts";
import {
  capShareRange,
  capsInForce,
  firstKeptHour,
  hourNumber,
  hourPeriod,
  monthPeriod,
  noHour,
  oldestDay,
  usageRange,
  usageRow,
  type LikelyAmount,
  type UsageRange,
} from "../usage-check.ts";
import type { Tables } from "./tables.ts";

type Owner = Pick<RunRecord, "tenantId" | "userId">;

/** A total of a day or an hour, with the tenant and the user to whom it belongs. */
interface Total extends Owner {
  readonly period: string;
  delta: UsageDelta;
}

/** The owner of a run, with the agent that makes a call. */
interface Holder extends Owner {
  readonly agent: string;
}

/** B7: the cap share of a run, or of an agent of the run, for a day. */
interface CapShare extends Holder {
  /** `capShareKey`. */
  readonly key: string;
  readonly runId: RunId;
  readonly amount: number;
}

export class MemoryUsageTotals implements UsageTotals {
  readonly #tables: Tables;
  readonly #totals = new Map<string, Total>();
  #capShares: readonly CapShare[] = [];
  /** The hour in which old hours were last deleted. */
  #cleared = -1;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    const { day, agent, caps } = request;
    const { runId, tenantId, userId } = this.#tables.owned(lease).record;
    const drawing: Holder = { tenantId, userId, agent: agent ?? "" };
    const key = capShareKey(day, agent);
    const isOwn = (each: CapShare): boolean => each.runId === runId && each.key === key;
    const uses = capsInForce(caps).map(([name, limit]): CapUse => {
      const { of, per } = capScopes[name];
      const period = per === "day" ? day : monthPeriod(day);
      const [from, before] = capShareRange(day, per);
      const totals = [...this.#totals.values()].filter(
        (each) => each.period === period && isUnder(of, { ...each, agent: each.delta.agent }, drawing),
      );
      const others = this.#capShares.filter(
        (each) => each.key >= from && each.key < before && isUnder(of, each, drawing) && !isOwn(each),
      );
      return {
        name,
        limit,
        spent: sumOf(totals.map(({ delta }) => delta.nanoUsd)),
        held: sumOf(others.map(({ amount }) => amount)),
      };
    });
    const own = this.#capShares.find(isOwn)?.amount ?? 0;
    const outcome = decideDraw(own, request, uses);
    if (outcome.kind === "held" && outcome.amount > own) {
      const kept = this.#capShares.filter((each) => !isOwn(each) && each.key >= oldestDay(day));
      this.#capShares = [...kept, { ...drawing, key, runId, amount: outcome.amount }];
    }
    return outcome;
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const range = usageRange(query);
    const { by, per } = range;
    const groups = new Map<string, Sum>();
    for (const total of this.#totals.values()) {
      if (!isSelected(total, range)) continue;
      const whose = {
        key: keyOf(total, by),
        ...(by === "user" && { tenantId: total.tenantId }),
        ...(per !== undefined && { at: timeOf(total, per) }),
      };
      const group = JSON.stringify(whose);
      const likely = likelyOf(total);
      const sum = groups.get(group);
      groups.set(
        group,
        sum === undefined
          ? { whose, amounts: total.delta, ...likely }
          : {
              whose,
              amounts: addUsageDelta(sum.amounts, total.delta),
              likelyNanoUsd: sum.likelyNanoUsd + likely.likelyNanoUsd,
              unknownNanoUsd: sum.unknownNanoUsd + likely.unknownNanoUsd,
            },
      );
    }
    return [...groups.values()].toSorted((one, other) => compareKeys(one.whose, other.whose)).map(rowOf);
  }

  /** Adds the usage of a commit. The journal calls this together with the other changes of the commit. */
  addNow({ runId, tenantId, userId }: RunRecord, { at, usage = [], holds = {} }: Commit): void {
    if (this.#capShares.length > 0)
      this.#capShares = this.#capShares.flatMap((each) => {
        if (each.runId !== runId) return [each];
        const amount = Math.min(each.amount, holds[each.key] ?? 0);
        return amount > 0 ? [{ ...each, amount }] : [];
      });
    const firstHour = firstKeptHour(at);
    const add = (period: string, whose: string, delta: UsageDelta): void => {
      const key = `${period} ${whose}`;
      const total = this.#totals.get(key);
      if (total === undefined) this.#totals.set(key, { period, tenantId, userId, delta });
      else total.delta = addUsageDelta(total.delta, delta);
    };
    for (const delta of usage) {
      const { day, hour, agent, model } = delta;
      const whose = JSON.stringify([tenantId, userId, agent, model]);
      add(day, whose, delta);
      add(monthPeriod(day), whose, delta);
      const period = hour === undefined ? undefined : hourPeriod(hourText(day, hour));
      if (period !== undefined && period >= firstHour) add(period, whose, delta);
    }
    if (usage.length > 0) this.#clearHours(at, firstHour);
  }

  /** U9: deletes hours that are no longer kept, once per hour. */
  #clearHours(at: number, firstHour: string): void {
    const hour = hourNumber(at);
    if (hour === this.#cleared) return;
    this.#cleared = hour;
    for (const [key, { period }] of this.#totals)
      if (period > noHour && period < firstHour) this.#totals.delete(key);
  }
}

/** A sum over totals of the same key. */
interface Sum extends LikelyAmount {
  readonly whose: Pick<UsageRow, "key" | "tenantId" | "at">;
  readonly amounts: UsageDelta;
}

function rowOf({ whose, amounts, ...likely }: Sum): UsageRow {
  const latency = latencyList(amounts.latency);
  const details = { detailedRuns: amounts.runs, latency, hasDetails: true, isDetailed: true };
  return usageRow(whose, { ...amounts, ...details, ...likely });
}

function isSelected(total: Total, range: UsageRange): boolean {
  const { by, from, to, keys, tenantId, userId, agent, model } = range;
  const { period } = total;
  if (period < from || period > to) return false;
  if (tenantId !== undefined && total.tenantId !== tenantId) return false;
  if (userId !== undefined && total.userId !== userId) return false;
  if (agent !== undefined && total.delta.agent !== agent) return false;
  if (model !== undefined && total.delta.model !== model) return false;
  if (keys === undefined) return true;
  const key = keyOf(total, by);
  return keys.some(
    (each) => each.key === key && (by !== "user" || (each.tenantId ?? null) === total.tenantId),
  );
}

function likelyOf({ delta: { turns, nanoUsd, lostCalls, lostNanoUsd } }: Total): LikelyAmount {
  const reported = { calls: turns, nanoUsd: nanoUsd - lostNanoUsd };
  const likely = likelyNanoUsd(reported, { calls: lostCalls, nanoUsd: lostNanoUsd });
  return { likelyNanoUsd: likely ?? lostNanoUsd, unknownNanoUsd: likely === null ? lostNanoUsd : 0 };
}

function keyOf(total: Total, by: UsageDimension): string | null {
  if (by === "user") return total.userId;
  if (by === "tenant") return total.tenantId;
  return by === "day" || by === "hour" ? timeOf(total, by) : total.delta[by];
}

function timeOf({ delta: { day, hour = 0 } }: Total, step: UsageStep): string {
  return step === "day" ? day : hourText(day, hour);
}

function compareKeys(one: Sum["whose"], other: Sum["whose"]): number {
  return (
    compare(one.key, other.key) ||
    compare(one.tenantId ?? null, other.tenantId ?? null) ||
    compare(one.at ?? null, other.at ?? null)
  );
}

/** Compares two texts by code units. `null` comes before all texts. */
function compare(one: string | null, other: string | null): number {
  if (one === other) return 0;
  if (one === null) return -1;
  return other === null || one > other ? 1 : -1;
}

/** Whether usage of `one` counts for a cap of `run`. */
function isUnder(of: CapScope["of"], one: Holder, run: Holder): boolean {
  if (of === "store") return true;
  if (of === "agent") return one.agent === run.agent;
  return one.tenantId === run.tenantId && (of === "tenant" || one.userId === run.userId);
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((all, each) => all + each, 0);
}

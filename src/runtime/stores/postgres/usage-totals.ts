import {
  decideDraw,
  type CapName,
  type CapUse,
  type DrawOutcome,
  type DrawRequest,
  type Lease,
  type UsageDelta,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
  type UsageTotals,
} from "../../../kernel/index.ts";
import type { RunKey } from "../codec/stored-run.ts";
import {
  amountColumns as columns,
  amounts,
  keyText as textOf,
  usageRowOf,
  usageValues,
  type SumRow,
} from "../sql/usage-row.ts";
import { capsInForce, oldestDay, usageRange, type UsageAmounts } from "../usage-check.ts";
import { Conditions } from "./db/conditions.ts";
import type { Queries } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";
import type { Transaction } from "./db/transaction.ts";

const add = `INSERT INTO {usage_totals} AS totals (day, tenant, user_name, agent, model, ${columns.join(", ")})
  VALUES ($1, $2, $3, $4, $5, ${columns.map((_column, index) => `$${index + 6}`).join(", ")})
  ON CONFLICT (day, tenant, user_name, agent, model) DO UPDATE SET
    ${columns.map((column) => `${column} = totals.${column} + excluded.${column}`).join(", ")}`;

const sums = columns.map((column, index) => `SUM(${column})::bigint AS "${amounts[index]}"`).join(", ");

const keyColumns: Readonly<Record<UsageDimension, string>> = {
  day: "day",
  agent: "agent",
  model: "model",
  user: "user_name",
};

/** The rows that count for a cap. The parameters are day, tenant, user and run. */
const scopes: Readonly<Record<CapName, string>> = {
  perDayUsd: "day = $1",
  perTenantPerDayUsd: "day = $1 AND tenant = $2",
  perUserPerDayUsd: "day = $1 AND tenant = $2 AND user_name = $3",
};

const keepAllotment = `INSERT INTO {allotments} (day, tenant, user_name, run_id, nano_usd) VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (day, tenant, user_name, run_id) DO UPDATE SET nano_usd = excluded.nano_usd`;

function amount(table: string, where: string): string {
  return `(SELECT coalesce(SUM(nano_usd), 0)::bigint FROM {${table}} WHERE ${where})`;
}

/**
 * Reads what a cap's scope has spent and holds, and what the run holds, with one statement: between two, a commit could turn
 * what a run holds into what it has spent, and neither would count it.
 */
function usesOf(names: readonly CapName[]): string {
  const parts = names.flatMap((name, index) => [
    `${amount("usage_totals", scopes[name])} AS spent${index}`,
    `${amount("allotments", `${scopes[name]} AND run_id <> $4`)} AS held${index}`,
  ]);
  const own = amount("allotments", "day = $1 AND tenant = $2 AND user_name = $3 AND run_id = $4");
  return `SELECT ${[...parts, `${own} AS own`].join(", ")}`;
}

export class PostgresUsageTotals implements UsageTotals {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { by, from, to, tenantId, userId } = usageRange(query);
    const column = keyColumns[by];
    const group = by === "user" ? "user_name, tenant" : column;
    const where = new Conditions().add("day >= ? AND day <= ?", from, to);
    if (tenantId !== undefined) where.add("tenant = ?", textOf(tenantId));
    if (userId !== undefined) where.add("user_name = ?", textOf(userId));
    const rows = await this.#tables.database.statements.all<SumRow>(
      `SELECT ${column} AS key, ${by === "user" ? "tenant" : "'' AS tenant"}, ${sums} FROM {usage_totals}
       WHERE ${where.sql} GROUP BY ${group} ORDER BY ${group}`,
      ...where.values,
    );
    return rows.map((row) => usageRowOf(row, by));
  }

  draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    return this.#tables.database.write((transaction) => this.#draw(transaction, lease, request));
  }

  /** U7: draws run one after another, so that each sees what the ones before it hold. */
  async #draw(transaction: Transaction, lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    const { day, caps } = request;
    await transaction.lock("draws");
    const { runId, tenantId, userId } = await this.#tables.ownerNow(transaction, lease);
    const whose = [day, textOf(tenantId), textOf(userId), runId] as const;
    const limits = capsInForce(caps);
    const row = await transaction.get<Readonly<Record<string, number>>>(
      usesOf(limits.map(([name]) => name)),
      ...whose,
    );
    const uses = limits.map(([name, limit], index): CapUse => ({
      name,
      limit,
      spent: row?.[`spent${index}`] ?? 0,
      held: row?.[`held${index}`] ?? 0,
    }));
    const own = row?.["own"] ?? 0;
    const outcome = decideDraw(own, request, uses);
    if (outcome.kind === "held" && outcome.amount > own) {
      await transaction.run("DELETE FROM {allotments} WHERE day < $1", oldestDay(day));
      await transaction.run(keepAllotment, ...whose, outcome.amount);
    }
    return outcome;
  }

  /** Adds the usage of a commit and returns the allotments of its run, inside its transaction. */
  async addNow(queries: Queries, run: RunKey, usage: readonly UsageDelta[]): Promise<void> {
    await queries.run("DELETE FROM {allotments} WHERE run_id = $1", run.runId);
    for (const delta of perRow(usage)) await queries.run(add, ...usageValues(run, delta));
  }
}

/**
 * Adds up what belongs to the same row, so that each row needs one statement. The rows are in one order, so that two commits that
 * add to the same rows do not wait for each other.
 */
function perRow(usage: readonly UsageDelta[]): readonly UsageDelta[] {
  const rows = new Map<string, UsageDelta>();
  for (const delta of usage) {
    const key = keyOf(delta);
    const row = rows.get(key);
    rows.set(key, row === undefined ? delta : sum(row, delta));
  }
  return [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

function sum(one: UsageDelta, other: UsageDelta): UsageDelta {
  const added = amounts.map((name) => [name, one[name] + other[name]] as const);
  return { ...one, ...(Object.fromEntries(added) as unknown as UsageAmounts) };
}

function keyOf({ day, agent, model }: UsageDelta): string {
  return JSON.stringify([day, agent, model]);
}

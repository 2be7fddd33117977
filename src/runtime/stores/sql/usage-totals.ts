import {
  decideDraw,
  type CapName,
  type CapUse,
  type Commit,
  type DrawOutcome,
  type DrawRequest,
  type Lease,
  type UsageDelta,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
  type UsageTotals,
} from "../../../kernel/index.ts";
import { tenantOf, tenantText, type RunKey } from "../codec/stored-run.ts";
import {
  capsInForce,
  oldestDay,
  usageRange,
  usageRow,
  type LikelyAmount,
  type UsageAmounts,
} from "../usage-check.ts";
import { Conditions } from "./conditions.ts";
import type { SqlTables } from "./tables.ts";
import { all, get, lock, run, type Value, type Work } from "./work.ts";

/** The names of the amounts, in the order of their columns. */
const amounts = [
  "inputTokens",
  "outputTokens",
  "cachedTokens",
  "turns",
  "nanoUsd",
  "lostTokens",
  "lostNanoUsd",
  "lostCalls",
  "unpriced",
  "runs",
] as const satisfies readonly (keyof UsageAmounts)[];

/** Until the draw ends, no commit of the run changes what it has spent and holds. */
const lockRun = "SELECT 1 FROM {runs} WHERE run_id = $1 FOR NO KEY UPDATE";
const returnAll = "DELETE FROM {allotments} WHERE run_id = $1";
const returnOthers = "DELETE FROM {allotments} WHERE run_id = $1 AND NOT (day = ANY($2::text[]))";
const lower = "UPDATE {allotments} SET nano_usd = $3 WHERE run_id = $1 AND day = $2 AND nano_usd > $3";

/** The columns of the amounts. */
const columns = amounts.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

/** A sum over rows of the same key. */
type SumRow = UsageAmounts & LikelyAmount & { readonly key: string; readonly tenant: string };

/** Users and models are stored like tenants, because a column of a primary key must not be NULL. */
const keyText = tenantText;

/** The statements, which name the column of the user. */
function statementsOf(user: string) {
  /** The rows that count for a cap. The parameters are day, tenant, user and run. */
  const scopes: Readonly<Record<CapName, string>> = {
    perDayUsd: "day = $1",
    perTenantPerDayUsd: "day = $1 AND tenant = $2",
    perUserPerDayUsd: `day = $1 AND tenant = $2 AND ${user} = $3`,
  };
  const places = columns.map((_column, index) => `$${index + 6}`);
  return {
    add: `INSERT INTO {usage_totals} AS totals (day, tenant, ${user}, agent, model, ${columns.join(", ")})
      VALUES ($1, $2, $3, $4, $5, ${places.join(", ")})
      ON CONFLICT (day, tenant, ${user}, agent, model) DO UPDATE SET
        ${columns.map((column) => `${column} = totals.${column} + excluded.${column}`).join(", ")}`,
    keepAllotment: `INSERT INTO {allotments} (day, tenant, ${user}, run_id, nano_usd) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (day, tenant, ${user}, run_id) DO UPDATE SET nano_usd = excluded.nano_usd`,
    /**
     * Reads what a cap's scope has spent and holds, and what the run holds, with one statement: between two, a commit could turn
     * what a run holds into what it has spent, and neither would count it.
     */
    usesOf(names: readonly CapName[]): string {
      const parts = names.flatMap((name, index) => [
        `${amount("usage_totals", scopes[name])} AS spent${index}`,
        `${amount("allotments", `${scopes[name]} AND run_id <> $4`)} AS held${index}`,
      ]);
      const own = amount("allotments", `day = $1 AND tenant = $2 AND ${user} = $3 AND run_id = $4`);
      return `SELECT ${[...parts, `${own} AS own`].join(", ")}`;
    },
  };
}

function amount(table: string, where: string): string {
  return `(SELECT coalesce(SUM(nano_usd), 0)::bigint FROM {${table}} WHERE ${where})`;
}

/** `likelyNanoUsd` for one row of the totals. */
const average = "lost_calls * ((nano_usd - lost_nano_usd) / turns)";
const likely = `CASE WHEN turns <= 0 OR lost_calls <= 0 OR ${average} > lost_nano_usd THEN lost_nano_usd ELSE ${average} END`;
const sums = [
  ...columns.map((column, index) => `SUM(${column})::bigint AS "${amounts[index]}"`),
  `SUM(${likely})::bigint AS "likelyNanoUsd"`,
].join(", ");

export class SqlUsageTotals implements UsageTotals {
  readonly #tables: SqlTables;
  readonly #keyColumns: Readonly<Record<UsageDimension, string>>;
  readonly #sql: ReturnType<typeof statementsOf>;

  constructor(tables: SqlTables) {
    const { userColumn } = tables.dialect;
    this.#tables = tables;
    this.#keyColumns = { day: "day", agent: "agent", model: "model", user: userColumn };
    this.#sql = statementsOf(userColumn);
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { by, from, to, tenantId, userId } = usageRange(query);
    const { [by]: column, user } = this.#keyColumns;
    const group = by === "user" ? `${user}, tenant` : column;
    const where = new Conditions().add("day >= ? AND day <= ?", from, to);
    if (tenantId !== undefined) where.add("tenant = ?", keyText(tenantId));
    if (userId !== undefined) where.add(`${user} = ?`, keyText(userId));
    const sql = `SELECT ${column} AS key, ${by === "user" ? "tenant" : "'' AS tenant"}, ${sums} FROM {usage_totals}
      WHERE ${where.sql} GROUP BY ${group} ORDER BY ${group}`;
    const rows = await this.#tables.query(() => all<SumRow>(sql, ...where.values));
    return rows.map((row) => usageRowOf(row, by));
  }

  draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    return this.#tables.transact(() => this.#draw(lease, request));
  }

  /** U7: draws run one after another, so that each sees what the ones before it hold. */
  *#draw(lease: Lease, request: DrawRequest): Work<DrawOutcome> {
    const { day, caps } = request;
    yield* lock("draws");
    yield* get(lockRun, lease.runId);
    const { runId, tenantId, userId } = yield* this.#tables.ownerNow(lease);
    const whose = [day, keyText(tenantId), keyText(userId), runId] as const;
    const limits = capsInForce(caps);
    const row = yield* get<Readonly<Record<string, number>>>(
      this.#sql.usesOf(limits.map(([name]) => name)),
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
      yield* run("DELETE FROM {allotments} WHERE day < $1", oldestDay(day));
      yield* run(this.#sql.keepAllotment, ...whose, outcome.amount);
    }
    return outcome;
  }

  /** Adds the usage of a commit and lowers the allotments of its run to `holds`, inside its transaction. */
  *addNow(owner: RunKey, usage: readonly UsageDelta[], holds: Commit["holds"] = {}): Work<void> {
    const held = Object.entries(holds);
    if (held.length === 0) yield* run(returnAll, owner.runId);
    else yield* run(returnOthers, owner.runId, Object.keys(holds));
    for (const [day, most] of held) yield* run(lower, owner.runId, day, most);
    for (const delta of perRow(usage)) yield* run(this.#sql.add, ...usageValues(owner, delta));
  }
}

/** Returns the values of a row of `usage_totals`: day, tenant, user, agent, model and the amounts. */
function usageValues(
  { tenantId, userId }: Pick<RunKey, "tenantId" | "userId">,
  delta: UsageDelta,
): readonly Value[] {
  const { day, agent, model } = delta;
  const key = [day, keyText(tenantId), keyText(userId), agent, keyText(model)];
  return [...key, ...amounts.map((name) => delta[name])];
}

function usageRowOf({ key, tenant, ...row }: SumRow, by: UsageDimension): UsageRow {
  const isOptional = by === "model" || by === "user";
  return usageRow(
    { key: isOptional ? tenantOf(key) : key, ...(by === "user" && { tenantId: tenantOf(tenant) }) },
    row,
  );
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

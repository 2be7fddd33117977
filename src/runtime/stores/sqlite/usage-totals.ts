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
import { capsInForce, oldestDay, usageRange } from "../usage-check.ts";
import type { Tables } from "./db/tables.ts";

const add = `INSERT INTO usage_totals (day, tenant, user, agent, model, ${columns.join(", ")})
  VALUES (?, ?, ?, ?, ?, ${columns.map(() => "?").join(", ")})
  ON CONFLICT DO UPDATE SET ${columns.map((column) => `${column} = ${column} + excluded.${column}`).join(", ")}`;

const sums = columns.map((column, index) => `SUM(${column}) AS ${amounts[index]}`).join(", ");

const keyColumns: Readonly<Record<UsageDimension, string>> = {
  day: "day",
  agent: "agent",
  model: "model",
  user: "user",
};

/** The rows that count for a cap, and the number of values that select them. */
const scopes: Readonly<Record<CapName, { readonly where: string; readonly values: number }>> = {
  perDayUsd: { where: "day = ?", values: 1 },
  perTenantPerDayUsd: { where: "day = ? AND tenant = ?", values: 2 },
  perUserPerDayUsd: { where: "day = ? AND tenant = ? AND user = ?", values: 3 },
};

export class SqliteUsageTotals implements UsageTotals {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const { by, from, to, tenantId, userId } = usageRange(query);
    const column = keyColumns[by];
    const group = by === "user" ? "user, tenant" : column;
    const filters = [
      ...(tenantId === undefined ? [] : [{ sql: "AND tenant = ?", value: textOf(tenantId) }]),
      ...(userId === undefined ? [] : [{ sql: "AND user = ?", value: textOf(userId) }]),
    ];
    const rows = await this.#tables.read(() =>
      this.#tables.database.all<SumRow>(
        `SELECT ${column} AS key, tenant, ${sums} FROM usage_totals
         WHERE day >= ? AND day <= ? ${filters.map(({ sql }) => sql).join(" ")} GROUP BY ${group} ORDER BY ${group}`,
        from,
        to,
        ...filters.map(({ value }) => value),
      ),
    );
    return rows.map((row) => usageRowOf(row, by));
  }

  draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    return this.#tables.write({ apply: () => this.#drawNow(lease, request) });
  }

  #drawNow(lease: Lease, request: DrawRequest): DrawOutcome {
    const { day, caps } = request;
    const { database } = this.#tables;
    const { runId, tenantId, userId } = this.#tables.ownerNow(lease);
    const whose = [day, textOf(tenantId), textOf(userId)] as const;
    const uses = capsInForce(caps).map(([name, limit]): CapUse => {
      const { where, values } = scopes[name];
      const scope = whose.slice(0, values);
      return {
        name,
        limit,
        spent: this.#amount(`SELECT SUM(nano_usd) AS amount FROM usage_totals WHERE ${where}`, ...scope),
        held: this.#amount(
          `SELECT SUM(nano_usd) AS amount FROM allotments WHERE ${where} AND run_id <> ?`,
          ...scope,
          runId,
        ),
      };
    });
    const own = this.#amount(
      "SELECT nano_usd AS amount FROM allotments WHERE day = ? AND tenant = ? AND user = ? AND run_id = ?",
      ...whose,
      runId,
    );
    const outcome = decideDraw(own, request, uses);
    if (outcome.kind === "held" && outcome.amount > own) {
      database.run("DELETE FROM allotments WHERE day < ?", oldestDay(day));
      database.run(
        "INSERT OR REPLACE INTO allotments VALUES (?, ?, ?, ?, ?)",
        ...whose,
        runId,
        outcome.amount,
      );
    }
    return outcome;
  }

  #amount(sql: string, ...values: readonly string[]): number {
    return this.#tables.database.get<{ readonly amount: number | null }>(sql, ...values)?.amount ?? 0;
  }

  /** Adds the usage of a commit and returns the allotments of its run, inside its transaction. */
  addNow(run: RunKey, usage: readonly UsageDelta[]): void {
    this.#tables.database.run("DELETE FROM allotments WHERE run_id = ?", run.runId);
    const statement = this.#tables.database.statement(add);
    for (const delta of usage) statement.run(...usageValues(run, delta));
  }
}

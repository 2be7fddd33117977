import type { UsageDelta, UsageDimension, UsageQuery, UsageRow, UsageTotals } from "../../../kernel/index.ts";
import { usageRange, usageRow, type UsageAmounts } from "../usage-check.ts";
import { tenantOf, tenantText, type RunKey } from "./db/run-row.ts";
import type { Tables } from "./db/tables.ts";

/** Users and models are stored like tenants, because a column of a primary key must not be NULL. */
const [textOf, valueOf] = [tenantText, tenantOf];

/** The columns of amounts, in the order of their table. */
const amounts = [
  "inputTokens",
  "outputTokens",
  "cachedTokens",
  "turns",
  "nanoUsd",
  "lostTokens",
  "lostNanoUsd",
  "unpriced",
  "runs",
] as const satisfies readonly (keyof UsageAmounts)[];
const columns = amounts.map((name) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));

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

type SumRow = UsageAmounts & { readonly key: string; readonly tenant: string };

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
    return rows.map((row) => rowOf(row, by));
  }

  /** Adds the usage of a commit, inside its transaction. */
  addNow({ tenantId, userId }: Pick<RunKey, "tenantId" | "userId">, usage: readonly UsageDelta[]): void {
    const statement = this.#tables.database.statement(add);
    for (const delta of usage)
      statement.run(
        delta.day,
        textOf(tenantId),
        textOf(userId),
        delta.agent,
        textOf(delta.model),
        ...amounts.map((name) => delta[name]),
      );
  }
}

function rowOf({ key, tenant, ...row }: SumRow, by: UsageDimension): UsageRow {
  const isOptional = by === "model" || by === "user";
  return usageRow(
    { key: isOptional ? valueOf(key) : key, ...(by === "user" && { tenantId: valueOf(tenant) }) },
    row,
  );
}

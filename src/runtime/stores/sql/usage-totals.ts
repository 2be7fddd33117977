import {
  addUsageDelta,
  capShareKey,
  capScopes,
  decideDraw,
  hourText,
  latencyBuckets,
  latencyList,
  type CapName,
  type CapScope,
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
  type DetailSums,
  type LikelyAmount,
  type UsageAmounts,
  type UsageRange,
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

/**
 * The names of the counts that only detailed rows have, in the order of their columns. The columns for durations
 * follow.
 */
const detailCounts = ["failedRuns", "failedCalls"] as const;

/** SQL that locks a run, so that no commit changes what it has spent and holds until the draw ends. */
const lockRun = "SELECT 1 FROM {runs} WHERE run_id = $1 FOR NO KEY UPDATE";
const returnAll = "DELETE FROM {allotments} WHERE run_id = $1";
const returnOthers = "DELETE FROM {allotments} WHERE run_id = $1 AND NOT (day = ANY($2::text[]))";
const lower = "UPDATE {allotments} SET nano_usd = $3 WHERE run_id = $1 AND day = $2 AND nano_usd > $3";

/** Deletes hours that are no longer kept. */
const deleteHours = `DELETE FROM {usage_totals} WHERE period > '${noHour}' AND period < $1`;

const columnOf = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** The columns of the amounts. */
const columns = amounts.map(columnOf);
const detailColumns = detailCounts.map(columnOf);
const latencyColumns = Array.from({ length: latencyBuckets }, (_each, bucket) => `latency_${bucket}`);
const added = [...columns, ...detailColumns, ...latencyColumns];
/** Number of columns in the key of a row. The columns with the amounts follow. */
const keyLength = 5;
const rowLength = keyLength + added.length;
/** Number of rows that one statement adds to. */
const rowsAtOnce = 40;

/** A sum over rows of the same key. */
type SumRow = UsageAmounts &
  LikelyAmount &
  Omit<DetailSums, "latency" | "hasDetails" | "isDetailed"> & {
    readonly key: string;
    readonly tenant: string;
    readonly at: string;
    readonly most: number;
    readonly least: number;
  } & Readonly<Record<`latency${number}`, number>>;

/** A stored row: the day, hour or month, and the amounts to add to it. */
interface PeriodDelta {
  readonly period: string;
  readonly delta: UsageDelta;
}

/**
 * Returns the stored form of a user or model in a key. It is the same as for tenants, because a column of a primary
 * key must not be NULL.
 */
const keyText = tenantText;

/** The run and the agent that draw. */
interface Drawing {
  readonly day: string;
  readonly agent: string | undefined;
  readonly tenant: string;
  readonly userId: string;
  readonly runId: string;
}

interface Statement {
  readonly sql: string;
  readonly values: readonly Value[];
}

/** Returns the statements with the name of the user column. */
function statementsOf(user: string) {
  const addOf = (rows: number): string => {
    const places = Array.from({ length: rows }, (_row, row) =>
      Array.from({ length: rowLength }, (_column, column) => `$${row * rowLength + column + 1}`),
    );
    return `INSERT INTO {usage_totals} AS totals (period, tenant, ${user}, agent, model, ${added.join(", ")})
      VALUES ${places.map((row) => `(${row.join(", ")})`).join(", ")}
      ON CONFLICT (period, tenant, ${user}, agent, model) DO UPDATE SET
        ${added.map((column) => `${column} = totals.${column} + excluded.${column}`).join(", ")}`;
  };
  const adds = new Map<number, string>();
  return {
    /** Returns SQL that adds amounts to this number of rows with one statement. */
    add(rows: number): string {
      const known = adds.get(rows) ?? addOf(rows);
      adds.set(rows, known);
      return known;
    },
    keepCapShare: `INSERT INTO {allotments} (day, tenant, ${user}, run_id, nano_usd) VALUES ($1, $2, $3, $4, $5)
      ON CONFLICT (day, tenant, ${user}, run_id) DO UPDATE SET nano_usd = excluded.nano_usd`,
    /**
     * Returns SQL that reads what a cap's scope has spent and holds, and what the run holds, with one statement.
     * Between two statements, a commit could turn what a run holds into what it has spent, so that neither would
     * count it.
     */
    usesOf(names: readonly CapName[], { day, agent, tenant, userId, runId }: Drawing): Statement {
      const values: Value[] = [];
      const at = (value: Value): string => `$${values.push(value)}`;
      const key = capShareKey(day, agent);
      const whose = (of: CapScope["of"]): string => {
        if (of === "store" || of === "agent") return "";
        return ` AND tenant = ${at(tenant)}${of === "user" ? ` AND ${user} = ${at(userId)}` : ""}`;
      };
      const parts = names.flatMap((name, index) => {
        const { of, per } = capScopes[name];
        const [from, before] = capShareRange(day, per);
        const period = per === "day" ? day : monthPeriod(day);
        const calls = of === "agent" ? ` AND agent = ${at(agent ?? "")}` : "";
        const spent = amount("usage_totals", `period = ${at(period)}${whose(of)}${calls}`);
        const held = of === "agent" ? ` AND substr(day, 12) = ${at(agent ?? "")}` : "";
        const others = ` AND NOT (run_id = ${at(runId)} AND day = ${at(key)})`;
        return [
          `${spent} AS spent${index}`,
          `${amount("allotments", `day >= ${at(from)} AND day < ${at(before)}${whose(of)}${held}${others}`)} AS held${index}`,
        ];
      });
      const own = amount(
        "allotments",
        `day = ${at(key)} AND tenant = ${at(tenant)} AND ${user} = ${at(userId)} AND run_id = ${at(runId)}`,
      );
      return { sql: `SELECT ${[...parts, `${own} AS own`].join(", ")}`, values };
    },
  };
}

function amount(table: string, where: string): string {
  return `(SELECT coalesce(SUM(nano_usd), 0)::bigint FROM {${table}} WHERE ${where})`;
}

/** SQL for `likelyNanoUsd` of one row of the totals. */
const average = "lost_calls * ((nano_usd - lost_nano_usd) / turns)";
const isUnknown = "(turns <= 0 OR lost_calls <= 0)";
const likely = `CASE WHEN ${isUnknown} OR ${average} > lost_nano_usd THEN lost_nano_usd ELSE ${average} END`;
const sums = [
  ...columns.map((column, index) => `SUM(${column})::bigint AS "${amounts[index]}"`),
  `SUM(${likely})::bigint AS "likelyNanoUsd"`,
  `SUM(CASE WHEN ${isUnknown} THEN lost_nano_usd ELSE 0 END)::bigint AS "unknownNanoUsd"`,
  // A row with usage from before format 19 has details of a part of it, which are left out.
  `SUM(runs * detailed)::bigint AS "detailedRuns"`,
  ...detailCounts.map((name) => `SUM(${columnOf(name)} * detailed)::bigint AS "${name}"`),
  ...latencyColumns.map((column, bucket) => `SUM(${column} * detailed)::bigint AS "latency${bucket}"`),
  `MAX(detailed)::bigint AS most`,
  `MIN(detailed)::bigint AS least`,
].join(", ");

export class SqlUsageTotals implements UsageTotals {
  readonly #tables: SqlTables;
  readonly #sql: ReturnType<typeof statementsOf>;
  /** The hour in which this store has last deleted old hours. */
  #cleared = -1;

  constructor(tables: SqlTables) {
    const { userColumn } = tables.dialect;
    this.#tables = tables;
    this.#sql = statementsOf(userColumn);
  }

  async sum(query: UsageQuery): Promise<readonly UsageRow[]> {
    const range = usageRange(query);
    const { by, per } = range;
    const { userColumn: user } = this.#tables.dialect;
    const keyColumns: Readonly<Record<UsageDimension, string>> = {
      day: range.isHourly ? "substr(period, 2, 10)" : "period",
      hour: "substr(period, 2)",
      agent: "agent",
      model: "model",
      user,
      tenant: "tenant",
    };
    const { [by]: column } = keyColumns;
    const time = per === undefined ? undefined : keyColumns[per];
    const group = [column, ...(by === "user" ? ["tenant"] : []), ...(time === undefined ? [] : [time])];
    const where = conditionsOf(range, column, user);
    const sql = `SELECT ${column} AS key, ${by === "user" ? "tenant" : "'' AS tenant"}, ${time ?? "''"} AS at, ${sums}
      FROM {usage_totals} WHERE ${where.sql} GROUP BY ${group.join(", ")} ORDER BY ${group.join(", ")}`;
    const rows = await this.#tables.query(() => all<SumRow>(sql, ...where.values));
    return rows.map((row) => usageRowOf(row, range));
  }

  draw(lease: Lease, request: DrawRequest): Promise<DrawOutcome> {
    return this.#tables.transact(() => this.#draw(lease, request));
  }

  /** U7: makes a draw. Draws run one after another, so that each sees what earlier ones hold. */
  *#draw(lease: Lease, request: DrawRequest): Work<DrawOutcome> {
    const { day, agent, caps } = request;
    yield* lock("draws");
    yield* get(lockRun, lease.runId);
    const { runId, tenantId, userId } = yield* this.#tables.ownerNow(lease);
    const [tenant, user] = [keyText(tenantId), keyText(userId)];
    const limits = capsInForce(caps);
    const names = limits.map(([name]) => name);
    const { sql, values } = this.#sql.usesOf(names, { day, agent, tenant, userId: user, runId });
    const row = yield* get<Readonly<Record<string, number>>>(sql, ...values);
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
      const key = capShareKey(day, agent);
      yield* run(this.#sql.keepCapShare, key, tenant, user, runId, outcome.amount);
    }
    return outcome;
  }

  /** Adds the usage of a commit and lowers the cap shares of its run to `holds`, inside its transaction. */
  *addNow(owner: RunKey, { at, usage = [], holds = {} }: Commit): Work<void> {
    const held = Object.entries(holds);
    if (held.length === 0) yield* run(returnAll, owner.runId);
    else yield* run(returnOthers, owner.runId, Object.keys(holds));
    for (const [day, most] of held) yield* run(lower, owner.runId, day, most);
    const rows = perRow(usage, firstKeptHour(at));
    for (let from = 0; from < rows.length; from += rowsAtOnce) {
      const some = rows.slice(from, from + rowsAtOnce);
      const values = some.flatMap((each) => usageValues(owner, each));
      yield* run(this.#sql.add(some.length), ...values);
    }
    if (rows.length > 0) yield* this.#clearHours(at);
  }

  /** U9: deletes hours that are no longer kept. It does nothing if this store has already done so in this hour. */
  *#clearHours(at: number): Work<void> {
    const hour = hourNumber(at);
    if (hour === this.#cleared) return;
    this.#cleared = hour;
    yield* run(deleteHours, firstKeptHour(at));
  }
}

function conditionsOf(range: UsageRange, column: string, user: string): Conditions {
  const { by, from, to, keys, tenantId, userId, agent, model } = range;
  const where = new Conditions().add("period >= ? AND period <= ?", from, to);
  if (tenantId !== undefined) where.add("tenant = ?", keyText(tenantId));
  if (userId !== undefined) where.add(`${user} = ?`, keyText(userId));
  if (agent !== undefined) where.add("agent = ?", agent);
  if (model !== undefined) where.add("model = ?", keyText(model));
  if (keys === undefined) return where;
  const isPair = by === "user";
  const terms = keys.map(() => (isPair ? `(${column} = ? AND tenant = ?)` : `${column} = ?`));
  const values = keys.flatMap(({ key, tenantId: tenant = null }) => [
    isOptional(by) ? keyText(key) : (key ?? ""),
    ...(isPair ? [keyText(tenant)] : []),
  ]);
  return where.add(terms.length === 0 ? "false" : `(${terms.join(" OR ")})`, ...values);
}

/** Whether the values of a dimension may be `null`. */
function isOptional(by: UsageDimension): boolean {
  return by === "model" || by === "user" || by === "tenant";
}

/** Returns the values of a row of `usage_totals`: period, tenant, user, agent, model and the amounts to add. */
function usageValues(
  { tenantId, userId }: Pick<RunKey, "tenantId" | "userId">,
  { period, delta }: PeriodDelta,
): readonly Value[] {
  const { agent, model, latency } = delta;
  return [
    period,
    keyText(tenantId),
    keyText(userId),
    agent,
    keyText(model),
    ...amounts.map((name) => delta[name]),
    ...detailCounts.map((name) => delta[name]),
    ...latencyList(latency),
  ];
}

function usageRowOf({ key, tenant, at, most, least, ...row }: SumRow, { by, per }: UsageRange): UsageRow {
  const latency = latencyColumns.map((_column, bucket) => row[`latency${bucket}`] ?? 0);
  return usageRow(
    {
      key: isOptional(by) ? tenantOf(key) : key,
      ...(by === "user" && { tenantId: tenantOf(tenant) }),
      ...(per !== undefined && { at }),
    },
    { ...row, latency, hasDetails: most === 1, isDetailed: least === 1 },
  );
}

/**
 * Adds up the amounts that belong to the same row of a day, an hour or a month, so that one statement adds to each
 * row once. The rows are sorted, so that two commits that change the same rows do not block each other. Hours that
 * are no longer kept have no row.
 */
function perRow(usage: readonly UsageDelta[], firstHour: string): readonly PeriodDelta[] {
  const rows = new Map<string, PeriodDelta>();
  const add = (period: string, delta: UsageDelta): void => {
    const key = JSON.stringify([period, delta.agent, delta.model]);
    const row = rows.get(key);
    rows.set(key, { period, delta: row === undefined ? delta : addUsageDelta(row.delta, delta) });
  };
  for (const delta of usage) {
    const { day, hour } = delta;
    add(day, delta);
    add(monthPeriod(day), delta);
    const period = hour === undefined ? undefined : hourPeriod(hourText(day, hour));
    if (period !== undefined && period >= firstHour) add(period, delta);
  }
  return [...rows].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
}

import {
  checkChoice,
  Fault,
  latencyQuantile,
  sumOfUsage,
  usageDimensions,
  type UsageDetails,
  type UsageDimension,
  type UsageQuery,
  type UsageRow,
} from "../../../../kernel/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns, counted, dollars, likelyCost } from "../../terminal/format.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface UsageOptions extends StoreOptions {
  readonly by?: string;
  readonly from?: string;
  readonly to?: string;
  readonly user?: string;
  readonly tenant?: string;
  readonly json?: boolean;
}

/** Text for a value that earlier versions did not record. */
const unknown = "-";

const filters = ["by", "from", "to", "user", "tenant"] as const satisfies readonly (keyof UsageOptions)[];

/**
 * Throws for options that select a part of the usage, because the cost of a single run is always printed as a
 * whole.
 */
export function refuseUsageOptions(run: string, options: UsageOptions): void {
  const given = filters.find((name) => options[name] !== undefined);
  if (given === undefined) return;
  throw new Fault(
    "invalid_argument",
    `--${given} cannot be combined with a run: use reeve cost ${run}, or reeve cost --${given} without a run`,
  );
}

/** Prints the costs of the runs of a store, by day, hour, agent, model, user or tenant. */
export function showUsage(options: UsageOptions, terminal: Terminal): Promise<ExitKind> {
  const { by = "day", from, to, user: userId, tenant: tenantId, json = false } = options;
  checkChoice("reeve cost", "--by", by, usageDimensions);
  const query: UsageQuery = { by: by as UsageDimension, from, to, userId, tenantId };
  return withStore(options, terminal, async (store): Promise<ExitKind> => {
    const rows = await store.usage.sum(query);
    const lines = json ? rows.map((row) => JSON.stringify(row)) : usageLines(query.by, rows);
    for (const line of rows.length === 0 ? [] : lines) await terminal.out(line);
    if (rows.length === 0)
      terminal.say("No usage found. A run adds its usage when it waits, is paused or ends.");
    return "ok";
  });
}

function usageLines(by: UsageDimension, rows: readonly UsageRow[]): readonly string[] {
  const lost = rows.some(({ unreported }) => unreported.tokens > 0);
  const heading = [by.toUpperCase(), "RUNS", "CALLS", "INPUT", "CACHED", "OUTPUT", "FAILED", "P95"];
  const shown = [...rows.map((row) => cells(nameOf(row), row, lost)), cells("total", sumOfUsage(rows), lost)];
  return columns([[...heading, ...(lost ? ["UNREPORTED", "LIKELY"] : []), "COST"], ...shown]);
}

function cells(name: string, row: UsageRow, lost: boolean): readonly string[] {
  const { runs, turns, inputTokens, cachedTokens, outputTokens, unreported, costUsd, unpricedTurns } = row;
  const { details } = row;
  const unpriced = unpricedTurns === 0 ? "" : `, ${counted(unpricedTurns)} calls of unknown price`;
  return [
    name,
    ...[runs, turns, inputTokens, cachedTokens, outputTokens].map(counted),
    details === null ? unknown : counted(details.failedRuns),
    secondsOf(details),
    ...(lost ? [counted(unreported.tokens), likelyCost(row)] : []),
    `${dollars(costUsd)}${unpriced}`,
  ];
}

/** Returns the duration that 95 of 100 calls did not exceed. */
function secondsOf(details: UsageDetails | null): string {
  const ms = details === null ? null : latencyQuantile(details.latency, 0.95);
  return ms === null ? unknown : `${(ms / 1_000).toFixed(1)}s`;
}

/** Returns the name of a row. For a user, the tenant stands before the name. */
function nameOf({ key, tenantId }: UsageRow): string {
  const name = key === null ? "(none)" : printable(key);
  return typeof tenantId === "string" ? `${printable(tenantId)}/${name}` : name;
}

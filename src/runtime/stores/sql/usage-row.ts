import type { UsageDelta, UsageDimension, UsageRow } from "../../../kernel/index.ts";
import { tenantOf, tenantText, type RunKey } from "../codec/stored-run.ts";
import { usageRow, type UsageAmounts } from "../usage-check.ts";

/** The names of the amounts, in the order of their columns. */
export const amounts = [
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

/** The columns of the amounts. */
export const amountColumns = amounts.map((name) =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

/** A sum over rows of the same key. */
export type SumRow = UsageAmounts & { readonly key: string; readonly tenant: string };

/** Users and models are stored like tenants, because a column of a primary key must not be NULL. */
export const keyText = tenantText;

/** Returns the values of a row of `usage_totals`: day, tenant, user, agent, model and the amounts. */
export function usageValues(
  { tenantId, userId }: Pick<RunKey, "tenantId" | "userId">,
  delta: UsageDelta,
): readonly (string | number)[] {
  const { day, agent, model } = delta;
  const key = [day, keyText(tenantId), keyText(userId), agent, keyText(model)];
  return [...key, ...amounts.map((name) => delta[name])];
}

export function usageRowOf({ key, tenant, ...row }: SumRow, by: UsageDimension): UsageRow {
  const isOptional = by === "model" || by === "user";
  return usageRow(
    { key: isOptional ? tenantOf(key) : key, ...(by === "user" && { tenantId: tenantOf(tenant) }) },
    row,
  );
}

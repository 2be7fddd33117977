import type { Journal, RunId, RunRecord, TenantScope } from "../../kernel/index.ts";
import { idDigest } from "../process/id-digest.ts";
import { sha256 } from "../process/sha256.ts";

/** Separates the id that a caller has chosen from the mark of its tenant. */
const separator = "--";
const markLength = 16;
/** Maximum length of a chosen id that is stored as a part of the id. A longer id is replaced by its digest. */
const longestChosen = "run_".length + 64 - separator.length - markLength;

/**
 * S6: returns the id under which a run is stored whose caller has chosen the id `chosen`. Chosen ids belong to a
 * tenant: the stored id ends with a mark of the tenant, so that the same id of two tenants means two runs. An id
 * that already has the mark, and every id of a run without a tenant, is returned unchanged.
 */
export function runIdWithin(tenantId: string | null | undefined, chosen: RunId): RunId {
  if (tenantId === null || tenantId === undefined) return chosen;
  const end = `${separator}${sha256(JSON.stringify(["tenant", tenantId])).slice(0, markLength)}`;
  if (chosen.endsWith(end)) return chosen;
  const name = chosen.length <= longestChosen ? chosen : `run_${idDigest(chosen, sha256)}`;
  return `${name}${end}` as RunId;
}

/**
 * S6: returns the stored id of the run that a caller of this tenant names. If a run with exactly this id exists in
 * the tenant, for example with an id that the runtime has generated, that run is meant.
 */
export async function storedRunId(
  journal: Pick<Journal, "find">,
  tenantId: string | null | undefined,
  named: RunId,
): Promise<RunId> {
  const own = runIdWithin(tenantId, named);
  if (own === named || tenantId === null || tenantId === undefined) return own;
  return (await journal.find(named, { tenantId })) === undefined ? own : named;
}

/** S6: returns the run that a caller with this scope names, by its stored id or by the chosen id. */
export async function findNamed(
  journal: Pick<Journal, "find">,
  named: RunId,
  scope: TenantScope | undefined,
): Promise<RunRecord | undefined> {
  const own = runIdWithin(scope?.tenantId, named);
  return (await journal.find(named, scope)) ?? (own === named ? undefined : journal.find(own, scope));
}

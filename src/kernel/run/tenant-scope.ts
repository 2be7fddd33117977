import { describeValue } from "../base/describe-value.ts";

/** Selects what belongs to one tenant, or to one user of that tenant. */
export interface TenantScope {
  /** Id of the tenant. */
  readonly tenantId: string;
  /** Id of the user. If absent, selects what belongs to any user of the tenant, and to none. */
  readonly userId?: string;
}

/** Whether a run or a session with this owner belongs to the scope. Everything belongs to an absent scope. */
export function isInScope(
  { tenantId, userId }: { readonly tenantId: string | null; readonly userId: string | null },
  scope: TenantScope | undefined,
): boolean {
  if (scope === undefined) return true;
  return tenantId === scope.tenantId && (scope.userId === undefined || userId === scope.userId);
}

/** Maximum length of a name that the caller of a run chooses, in characters. Names are copied to tasks, events and indexes. */
export const longestName = 1_024;

/**
 * What is wrong with the id of a user or a tenant, or the name of a channel. `undefined` if nothing is. A store writes
 * every unpaired surrogate as the same character, so that two tenants whose ids differ only in these would be one.
 */
export function nameProblem(name: unknown): string | undefined {
  if (typeof name !== "string") return `expected a text, not ${describeValue(name)}`;
  if (name === "") return "it is empty; use a text of at least one character, or leave it out";
  if (name.length > longestName) return `it has ${name.length} characters; use at most ${longestName}`;
  if (!name.isWellFormed())
    return `${describeValue(name)} has an unpaired surrogate; use well-formed Unicode`;
  return undefined;
}

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

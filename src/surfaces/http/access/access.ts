import { Fault, type TenantScope } from "../../../kernel/index.ts";

/**
 * The rights of a token. `read` can read; `run` also starts runs, controls them and changes sessions; `admin` also
 * delivers dead letters again, and may see the whole store.
 */
export const scopes = Object.freeze(["read", "run", "admin"] as const);

/** One of `scopes`. */
export type Scope = (typeof scopes)[number];

/** The caller of a request, with the rights of the caller. */
export interface Access {
  /** Id of the token. `null` if the server needs no token. */
  readonly tokenId: string | null;
  /** Name of the token. Commands are recorded with this name if the token names no user. */
  readonly name: string;
  readonly scope: Scope;
  /**
   * Id of the tenant. `null` is possible only with the scope `admin`: the caller then sees the runs and sessions of
   * all tenants.
   */
  readonly tenantId: string | null;
  /** The user in whose name the caller acts. `null` if the token names no user. */
  readonly userId: string | null;
}

/** Returns the tenant and user whose runs a caller sees. `undefined` if the caller sees the runs of all tenants. */
export function scopeOf({ tenantId, userId }: Access): TenantScope | undefined {
  return tenantId === null ? undefined : { tenantId, ...(userId !== null && { userId }) };
}

/** The access to a server that needs no token: the caller is the person at this machine. */
export const localAccess: Access = Object.freeze({
  tokenId: null,
  name: "local",
  scope: "admin",
  tenantId: null,
  userId: "person",
});

/** The access to a route that needs no token. No runs and sessions can be reached with it. */
export const publicAccess: Access = Object.freeze({
  tokenId: null,
  name: "public",
  scope: "read",
  tenantId: null,
  userId: null,
});

/** Whether the access includes a scope. */
export function hasScope({ scope }: Access, needed: Scope): boolean {
  return scopes.indexOf(scope) >= scopes.indexOf(needed);
}

/** Throws `permission_denied` if the access does not include a scope. */
export function requireScope(access: Access, needed: Scope): void {
  const { scope, name } = access;
  if (hasScope(access, needed)) return;
  throw new Fault(
    "permission_denied",
    `token ${JSON.stringify(name)} has the scope ${scope}, and this request needs ${needed}; use a token with the scope ${needed}`,
    { details: { scope, needed } },
  );
}

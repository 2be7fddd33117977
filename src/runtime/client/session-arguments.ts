import {
  agentIdOf,
  describeValue,
  Fault,
  optionNames,
  type ForkSessionOptions,
  type MoveOptions,
  type SearchOptions,
  type SessionCompaction,
  type SessionEntriesOptions,
  type SessionFilter,
  type SessionListOptions,
  type SessionPathOptions,
  type SessionQuery,
  type TenantScope,
} from "../../kernel/index.ts";

/** Maximum length of a name or a label. */
const longestName = 200;

const filterNames = { agentId: true, tenantId: true, userId: true, limit: true, after: true } as const;
export const listNames = optionNames<SessionListOptions>({ ...filterNames, text: true });
export const searchNames = optionNames<SearchOptions>({ ...filterNames, sessionId: true });
export const pathNames = optionNames<SessionPathOptions>({ leafId: true, from: true });
export const entriesNames = optionNames<SessionEntriesOptions>({ limit: true, after: true });
export const moveNames = optionNames<MoveOptions>({ summary: true });
export const forkNames = optionNames<ForkSessionOptions>({ entryId: true, sessionId: true, name: true });
export const compactionNames = optionNames<SessionCompaction>({
  summary: true,
  firstKeptEntryId: true,
  tokensBefore: true,
});
export const customNames = optionNames<{ customType: unknown; data?: unknown; message?: unknown }>({
  customType: true,
  data: true,
  message: true,
});

/**
 * Returns the query of the store for a filter. S6: throws `invalid_argument` if the filter names a tenant or user
 * outside of the scope.
 */
export function sessionQuery(
  { agentId, tenantId, userId }: SessionFilter,
  scope: TenantScope | undefined,
): SessionQuery {
  for (const [name, value, own] of [
    ["tenantId", tenantId, scope?.tenantId],
    ["userId", userId, scope?.userId],
  ] as const)
    if (value !== undefined && own !== undefined && value !== own)
      throw new Fault(
        "invalid_argument",
        `invalid ${name} ${describeValue(value)}: this view is for ${describeValue(own)}; omit ${name}, or use another view`,
      );
  return {
    ...(agentId !== undefined && { agentId: agentIdOf(agentId) }),
    ...(tenantId !== undefined && { tenantId }),
    ...(userId !== undefined && { userId }),
    ...scope,
  };
}

export function checkText(name: string, value: unknown): asserts value is string {
  if (typeof value === "string" && value !== "") return;
  throw new Fault("invalid_argument", `invalid ${name} ${describeValue(value)}: expected a text`);
}

export function checkName(name: string, value: unknown): void {
  checkText(name, value);
  if (value.length > longestName)
    throw new Fault(
      "invalid_argument",
      `invalid ${name}: it has ${value.length} characters; use at most ${longestName}`,
    );
}

export function checkLimit(limit: number): void {
  if (Number.isSafeInteger(limit) && limit >= 1) return;
  throw new Fault("invalid_argument", `invalid limit ${limit}: expected an integer of at least 1`);
}

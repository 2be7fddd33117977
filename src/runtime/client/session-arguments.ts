import {
  agentIdOf,
  describeValue,
  Fault,
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
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** Maximum length of a name or a label. */
const longestName = 200;

const filledText = is.text({ empty: false });
const filterKinds = {
  agentId: is.any,
  tenantId: is.any,
  userId: is.any,
  limit: is.integer({ from: 1 }),
  after: is.any,
} satisfies OptionKinds<SessionFilter>;
export const listTable = optionTable({
  ...filterKinds,
  text: filledText,
} satisfies OptionKinds<SessionListOptions>);
export const searchTable = optionTable({
  ...filterKinds,
  sessionId: is.any,
} satisfies OptionKinds<SearchOptions>);
export const pathTable = optionTable({
  leafId: filledText,
  from: is.any,
} satisfies OptionKinds<SessionPathOptions>);
export const entriesTable = optionTable({
  limit: filterKinds.limit,
  after: filledText,
} satisfies OptionKinds<SessionEntriesOptions>);
export const moveTable = optionTable({ summary: is.any } satisfies OptionKinds<MoveOptions>);
export const forkTable = optionTable({
  entryId: filledText,
  sessionId: is.any,
  name: is.any,
} satisfies OptionKinds<ForkSessionOptions>);
export const compactionTable = optionTable({
  summary: is.any,
  firstKeptEntryId: is.text({ empty: false, required: true }),
  tokensBefore: is.any,
} satisfies OptionKinds<SessionCompaction>);
export const customTable = optionTable({
  customType: is.any,
  data: is.any,
  message: is.any,
} satisfies OptionKinds<{ customType: unknown; data?: unknown; message?: unknown }>);

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

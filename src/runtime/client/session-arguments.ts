import {
  agentIdOf,
  describeValue,
  Fault,
  checkEntry,
  type ForkSessionOptions,
  type ImportedSession,
  type MoveOptions,
  type SearchOptions,
  type SessionCompaction,
  type SessionEntriesOptions,
  type SessionEntry,
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
  limit: filterKinds.limit,
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
const importTable = optionTable({
  agentId: is.text({ empty: false, required: true }),
  entries: is.list({ hint: "use the entries of readSessionFile()" }),
  sessionId: is.any,
  tenantId: is.any,
  userId: is.any,
} satisfies OptionKinds<ImportedSession>);
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

/**
 * Checks an imported session and returns its entries. Throws before anything is stored if a session cannot contain
 * them.
 */
export function readImported(imported: ImportedSession): readonly SessionEntry[] {
  importTable.read("sessions.import()", imported);
  const { entries } = imported;
  if (entries.length === 0)
    throw new Fault(
      "invalid_argument",
      "invalid entries of sessions.import(): expected at least one entry, because a session without entries does not exist",
    );
  const known = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    checkEntry(entry);
    const { id, parentId, runId, taskId } = entry;
    const problem =
      runId !== null || taskId !== null
        ? "it belongs to a run; set its runId and taskId to null"
        : known.has(id)
          ? "an earlier entry has the same id"
          : parentId !== null && !known.has(parentId)
            ? `no entry before it has the id of its parent, ${describeValue(parentId)}`
            : undefined;
    if (problem !== undefined)
      throw new Fault(
        "invalid_argument",
        `invalid entry ${index + 1} (${describeValue(id)}) of sessions.import(): ${problem}`,
      );
    known.add(id);
  }
  return entries;
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

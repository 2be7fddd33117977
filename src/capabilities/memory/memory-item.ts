import {
  assertJson,
  Fault,
  type Episode,
  type Fact,
  type JsonObject,
  type MemoryScope,
  type MemoryWrite,
  type RecallQuery,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

/** A stored episode. */
export interface EpisodeRow {
  readonly id: string;
  readonly text: string;
  readonly at: number;
  readonly metadata: string | null;
}

const queryTable = optionTable({
  text: is.text(),
  limit: is.integer({ from: 1, default: 10 }),
  asOf: is.number({}),
} satisfies OptionKinds<RecallQuery>);
const forgetTable = optionTable({ ids: is.any } satisfies OptionKinds<{ readonly ids: readonly string[] }>);

/** Returns the limit and the time of a query. Throws `invalid_argument`. */
export function recallRange(
  query: RecallQuery,
  now: number,
): { readonly limit: number; readonly asOf: number } {
  const { limit, asOf = now } = queryTable.read("recall()", query);
  return { limit, asOf };
}

/** Throws `invalid_argument` if an item is not valid for a memory. */
export function checkWrite(write: MemoryWrite): void {
  if (write.type === "episode") assertJson(write.metadata ?? null, "the metadata of an episode");
  else if (write.type === "block") {
    if (write.block.name === "")
      throw new Fault("invalid_argument", "the name of a memory block is empty: use a name");
  } else if (write.fact.validFrom !== undefined && !Number.isFinite(write.fact.validFrom))
    throw new Fault("invalid_argument", `invalid validFrom ${write.fact.validFrom}: use epoch milliseconds`);
}

/** Throws `invalid_argument` if the query of `forget()` has unknown options. */
export function checkForget(query: { readonly ids: readonly string[] } | undefined): void {
  if (query !== undefined) forgetTable.read("forget()", query);
}

/** Y1: returns a key that is unique for each scope, whatever characters its ids contain. */
export function scopeKey({ tenantId, userId, agentId }: MemoryScope): string {
  return JSON.stringify([userId, agentId ?? null, ...(tenantId == null ? [] : [tenantId])]);
}

export function episodeOf({ id, text, at, metadata }: EpisodeRow): Episode {
  return { id, text, at, ...(metadata !== null && { metadata: JSON.parse(metadata) as JsonObject }) };
}

/** Returns the text by whose words a fact is found. */
export function factText({
  subject,
  predicate,
  object,
}: Pick<Fact, "subject" | "predicate" | "object">): string {
  return `${subject} ${predicate} ${object}`;
}

import type { Fact } from "../../kernel/index.ts";

/** What a new fact changes among those of its subject and predicate. */
export interface Supersession {
  /** Until when the new one is valid. */
  readonly validUntil: number | null;
  /** The one that stood when the new one begins: it ends there. */
  readonly closes: string | null;
  /** It says what the new one says: nothing is to be written. */
  readonly repeats: string | null;
}

/** Y3: where a fact that begins at `validFrom` fits among the others, which do not overlap. */
export function supersede(
  others: readonly Pick<Fact, "id" | "object" | "validFrom" | "validUntil">[],
  { object, validFrom }: Pick<Fact, "object" | "validFrom">,
): Supersession {
  let validUntil: number | null = null;
  for (const other of others) {
    if (other.validFrom > validFrom && (validUntil === null || other.validFrom < validUntil))
      validUntil = other.validFrom;
  }
  const standing = others.find(
    (other) => other.validFrom <= validFrom && (other.validUntil === null || other.validUntil > validFrom),
  );
  if (standing === undefined) return { validUntil, closes: null, repeats: null };
  if (standing.object === object) return { validUntil, closes: null, repeats: standing.id };
  return { validUntil: standing.validUntil ?? validUntil, closes: standing.id, repeats: null };
}

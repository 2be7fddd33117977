import type { Fact } from "../../kernel/index.ts";

/** How a new fact changes the other facts with the same subject and predicate. */
export interface Supersession {
  /** End of the new fact's validity, in epoch milliseconds. `null` means that it has no end. */
  readonly validUntil: number | null;
  /** Id of the fact that was valid when the new one starts; it ends at that moment. */
  readonly closes: string | null;
  /** Id of a fact that already says the same. If set, nothing is written. */
  readonly repeats: string | null;
}

/**
 * Y3: returns how a fact that starts at `validFrom` fits between other facts. The validity periods of the other
 * facts must not overlap.
 */
export function supersede(
  others: readonly Pick<Fact, "id" | "object" | "validFrom" | "validUntil">[],
  { object, validFrom }: Pick<Fact, "object" | "validFrom">,
): Supersession {
  let validUntil: number | null = null;
  for (const other of others) {
    if (other.validFrom > validFrom && (validUntil === null || other.validFrom < validUntil))
      validUntil = other.validFrom;
  }
  const current = others.find(
    (other) => other.validFrom <= validFrom && (other.validUntil === null || other.validUntil > validFrom),
  );
  if (current === undefined) return { validUntil, closes: null, repeats: null };
  if (current.object === object) return { validUntil, closes: null, repeats: current.id };
  return { validUntil: current.validUntil ?? validUntil, closes: current.id, repeats: null };
}

interface Item {
  readonly id: string;
}

/** What the inbox shows: the chosen item with its place in the list, and above it the one that was answered last. */
export interface Choice<I extends Item> {
  readonly chosen: I | undefined;
  readonly at: number;
  readonly answered: I | null;
}

/** Nothing is chosen yet. */
export const noChoice = { chosen: undefined, at: 0, answered: null } as const;

/**
 * What the inbox shows after its items changed. The item that the person wants precedes. If the chosen one was answered,
 * it stays above as one line, and the item that took its place comes up.
 */
export function nextChoice<I extends Item>(
  before: Choice<I>,
  items: readonly I[],
  wanted: string | null,
): Choice<I> {
  const place = (id: string | null | undefined): number => items.findIndex((item) => item.id === id);
  const { chosen } = before;
  const at = place(wanted) >= 0 ? place(wanted) : place(chosen?.id);
  if (at >= 0) {
    const isMoved = items[at]?.id !== chosen?.id;
    return { chosen: items[at], at, answered: isMoved ? null : before.answered };
  }
  const next = Math.max(0, Math.min(before.at, items.length - 1));
  return { chosen: items[next], at: next, answered: chosen ?? before.answered };
}

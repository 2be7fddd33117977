import fc from "fast-check";
import type { Store } from "../../../src/kernel/index.ts";

/** A property that holds for any sequence of moves on a new store. */
export type Model = (open: () => Promise<Store>) => fc.IAsyncProperty<[unknown]>;

/** Plays each sequence on a new store, and closes the store afterwards. */
export function onStore<Sequence>(
  moves: fc.Arbitrary<Sequence>,
  open: () => Promise<Store>,
  play: (store: Store, sequence: Sequence) => Promise<void>,
): fc.IAsyncProperty<[unknown]> {
  const played = moves.map((sequence) => ({ sequence }));
  return fc.asyncProperty<[{ sequence: Sequence }]>(played, async ({ sequence }) => {
    const store = await open();
    try {
      await play(store, sequence);
    } finally {
      await store.close();
    }
  });
}

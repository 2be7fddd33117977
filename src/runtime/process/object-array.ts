/**
 * An empty array with elements kind PACKED_ELEMENTS. `[]` starts as PACKED_SMI_ELEMENTS, and its transition at the
 * first `push` deoptimises code that V8 has compiled for arrays of objects. For arrays that every turn reads and of
 * which a process has few. Bench: `loop`, row "turn in memory".
 */
export function objectArray<Item extends object>(): Item[] {
  const array: object[] = [objectArray];
  array.pop();
  return array as Item[];
}

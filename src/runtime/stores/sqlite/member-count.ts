/** How many members an object has, with those that are `undefined`. */
export function memberCount(value: object | null): number {
  let count = 0;
  for (const _member in value) count++;
  return count;
}

/** Whether nothing in the list is absent: it would come back as null. */
export function isWhole(list: readonly unknown[]): boolean {
  for (const item of list) if (item === undefined) return false;
  return true;
}

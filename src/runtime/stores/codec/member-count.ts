/** Returns the number of members of an object that are not `undefined`. */
export function memberCount(value: object): number {
  let count = 0;
  for (const member in value) if (value[member as keyof typeof value] !== undefined) count++;
  return count;
}

/** Whether no item of a list is `undefined`, because JSON would store `null` instead. */
export function isWhole(list: readonly unknown[]): boolean {
  for (const item of list) if (item === undefined) return false;
  return true;
}

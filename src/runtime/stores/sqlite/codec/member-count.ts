/** How many members an object has, but for those that are `undefined`. */
export function memberCount(value: object): number {
  let count = 0;
  for (const member in value) if (value[member as keyof typeof value] !== undefined) count++;
  return count;
}

/** Whether nothing in the list is absent: it would come back as null. */
export function isWhole(list: readonly unknown[]): boolean {
  for (const item of list) if (item === undefined) return false;
  return true;
}

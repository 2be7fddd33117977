/**
 * An empty list of objects. `[]` is one of integers until an object is in it, and code that was compiled for lists of objects is compiled
 * again when it meets one. For lists that every turn looks at and of which a process has few: by the time it makes the second, all is
 * compiled for what the first has become.
 */
export function objectArray<Item extends object>(): Item[] {
  const list: object[] = [objectArray];
  list.pop();
  return list as Item[];
}

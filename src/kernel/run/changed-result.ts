/**
 * Returns a copy of a run's result with some fields changed. The fields that are computed when they are first read, such
 * as `messages`, stay so.
 */
export function changedResult<Result extends object, Changes extends object>(
  result: Result,
  changes: Changes,
): Omit<Result, keyof Changes> & Changes {
  const fields: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(result);
  for (const [name, value] of Object.entries(changes))
    fields[name] = { value, enumerable: true, writable: true, configurable: true };
  return Object.defineProperties({}, fields) as Omit<Result, keyof Changes> & Changes;
}

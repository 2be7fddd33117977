import { contentThreshold } from "../../../kernel/index.ts";

/** Number of characters that is assumed for a number, a boolean or `null`. */
const unitsOfScalar = 5;

/**
 * Whether the JSON text of a value has at least `contentThreshold` characters. The count ignores escapes, so that
 * the cost is O(members) and not O(characters). Objects that are large are added to `met` and not counted again,
 * because V8 lists all keys of an object before a loop over them starts. `met` is valid as long as no object
 * changes.
 */
export function isLarge(value: unknown, met?: WeakSet<object>): boolean {
  return unitsOf(value, met) >= contentThreshold;
}

/** Counts the characters of the value's JSON text. Stops as soon as the value counts as large. */
function unitsOf(value: unknown, met?: WeakSet<object>): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return value === undefined ? 0 : unitsOfScalar;
  if (met?.has(value) === true) return contentThreshold;
  let units = 2;
  if (Array.isArray(value)) {
    const items = value as readonly unknown[];
    for (let index = 0; index < items.length && units < contentThreshold; index++)
      units += unitsOf(items[index], met) + 1;
  } else {
    const members = value as Readonly<Record<string, unknown>>;
    for (const key in members) {
      units += unitsOf(members[key], met) + key.length + 4;
      if (units >= contentThreshold) break;
    }
  }
  if (units >= contentThreshold) met?.add(value);
  return units;
}

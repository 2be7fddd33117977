import type { JsonValue } from "./json-value.ts";

type Scalar = string | number | boolean | null | undefined | ((...args: never[]) => unknown);

/** The type with all properties `readonly`, recursively. JSON values and branded ids are unchanged. */
export type DeepReadonly<Value> = JsonValue extends Value
  ? Value
  : Value extends Scalar
    ? Value
    : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** Freezes a tree of plain objects and arrays in place. A subtree that is already frozen is not visited again. */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key in value) if (typeof value[key] === "object" && value[key] !== null) deepFreeze(value[key]);
  return value;
}

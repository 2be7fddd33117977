import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import type { ObjectPlace } from "../limits/flow-control.ts";
import { maxRecordBytes, type RecordKey } from "./records.ts";

/** The namespace of the records that contain the states of objects. */
export const objectRecords = "objects";

/** Maximum size of the state of a key, in bytes of its JSON text in UTF-8. */
export const maxStateBytes = maxRecordBytes;

/**
 * Maximum length of the key of an object, in the encoding of `encodeURIComponent`. With this length, name and key
 * together fit into the key of a record.
 */
const longestKey = 380;

/** S6: returns the address of the record with the state of a key. Its tenant is that of the run. */
export function stateRecord({ name, key }: ObjectPlace): Pick<RecordKey, "namespace" | "key"> {
  return { namespace: objectRecords, key: `${name}/${encodeURIComponent(key)}` };
}

/**
 * Throws `invalid_argument` if the value is not a valid key of an object. `owner` names the object, such as `object
 * counter`.
 */
export function requireObjectKey(owner: string, key: unknown): asserts key is string {
  const isKey = typeof key === "string" && key !== "" && key.isWellFormed() && !key.includes("\0");
  if (isKey && encodeURIComponent(key).length <= longestKey) return;
  throw new Fault(
    "invalid_argument",
    `invalid key ${describeValue(key)} of ${owner}: expected a text of 1 to ${longestKey} characters without NUL, where a character outside A-Z a-z 0-9 - _ . ! ~ * ' ( ) counts three times per byte`,
  );
}

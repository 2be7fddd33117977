import { isObject, readProperty } from "../base/read-property.ts";

/** Where clients keep the status of the response; not `code`, which bodies use too. */
const statusKeys = ["statusCode", "status", "status_code"] as const;
/** What wraps a response's error without being its body. */
const wrapperKeys = ["lastError", "response", "cause"] as const;
const maxDepth = 4;

/**
 * The HTTP status of the response an error tells of, whatever its body says. `undefined`: there was no response, or it is not told of.
 * Never throws.
 */
export function responseStatus(error: unknown, depth = 0): number | undefined {
  if (!isObject(error) || depth > maxDepth) return undefined;
  for (const key of statusKeys) {
    const status = readProperty(error, key);
    if (typeof status === "number" && status >= 100 && status < 600) return status;
  }
  for (const key of wrapperKeys) {
    const status = responseStatus(readProperty(error, key), depth + 1);
    if (status !== undefined) return status;
  }
  return undefined;
}

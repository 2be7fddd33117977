import { isObject, readProperty } from "../base/read-property.ts";

/**
 * Properties under which clients keep the status of the response. `code` is excluded, because bodies use it as well.
 */
const statusKeys = ["statusCode", "status", "status_code"] as const;
/** Properties that wrap a response's error and are not its body. */
const wrapperKeys = ["lastError", "response", "cause"] as const;
const maxDepth = 4;

/**
 * The HTTP status of the response that an error reports, independent of the body. Returns `undefined` if there was no
 * response or the error does not mention it. Never throws.
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

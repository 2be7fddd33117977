/**
 * Functions that read values of unknown origin. They never throw: a getter, proxy or method that throws reads as
 * absent.
 */

export function readProperty(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}

export function readElements(value: unknown, limit: number): readonly unknown[] {
  const length = isArray(value) ? readProperty(value, "length") : 0;
  const count = typeof length === "number" ? Math.min(length, limit) : 0;
  const elements: unknown[] = [];
  for (let index = 0; index < count; index += 1) elements.push(readProperty(value, String(index)));
  return elements;
}

export function readLast(value: unknown): unknown {
  const length = isArray(value) ? readProperty(value, "length") : 0;
  return typeof length === "number" && length > 0 ? readProperty(value, String(length - 1)) : undefined;
}

/**
 * Reads a header from a plain object (in any letter case) or from an object with `get(name)`. `name` must be lower
 * case.
 */
export function readHeader(headers: unknown, name: string): string | undefined {
  try {
    const get = readProperty(headers, "get");
    if (typeof get === "function") return headerText(Reflect.apply(get, headers, [name]));
    if (!isObject(headers)) return undefined;
    const key = Object.keys(headers).find((candidate) => candidate.toLowerCase() === name);
    return key === undefined ? undefined : headerText(readProperty(headers, key));
  } catch {
    return undefined;
  }
}

/** Finds the JSON object in a text such as `429 {"error":…}` and the text before it. */
export function readEmbeddedJson(
  text: string,
): { readonly before: string; readonly value: object } | undefined {
  const start = text.indexOf("{");
  const end = text.lastIndexOf("}");
  if (start < 0 || end < start) return undefined;
  try {
    const value: unknown = JSON.parse(text.slice(start, end + 1));
    return isObject(value) ? { before: text.slice(0, start), value } : undefined;
  } catch {
    return undefined;
  }
}

export function isArray(value: unknown): boolean {
  try {
    return Array.isArray(value);
  } catch {
    return false; // a revoked proxy
  }
}

export function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function headerText(value: unknown): string | undefined {
  const single = isArray(value) ? readProperty(value, "0") : value;
  if (typeof single === "number") return String(single);
  return typeof single === "string" ? single.trim() : undefined;
}

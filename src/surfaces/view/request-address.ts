type Values = Readonly<Record<string, unknown>>;

/**
 * Returns the address of a route: path parameters are encoded, and a list in the query becomes several parameters
 * of the same name.
 */
export function addressOf(path: string, params: Values = {}, query: Values = {}): string {
  const filled = path.replaceAll(/\{(\w+)\}/gu, (_brace, name: string) =>
    encodeURIComponent(String(params[name])),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value])
      if (typeof each === "string" || typeof each === "number" || typeof each === "boolean")
        search.append(name, String(each));
  const text = search.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

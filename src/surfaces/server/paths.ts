/** The first segment of a path. */
export function firstSegment(path: string): string | undefined {
  return path.split("/", 2)[1];
}

/** Whether a path of the table, with parameters in braces, matches a path. */
export function matches(path: string, pathname: string): boolean {
  const [parts, wanted] = [path.split("/"), pathname.split("/")];
  return (
    parts.length === wanted.length && parts.every((part, at) => part.startsWith("{") || part === wanted[at])
  );
}

/** The id of the run that a path of the page shows. `undefined` if it shows none. */
export function shownRunId(path: string): string | undefined {
  return /^\/runs\/(?<runId>[\w-]+)(?:\/|$)/u.exec(path)?.groups?.["runId"];
}

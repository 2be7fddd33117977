/**
 * Whether `path` is `root` or below it, judged by names: `.` and `..` are resolved, both kinds of slashes count, and a
 * relative path starts at the root. A name that no file system accepts is outside.
 */
export function isInside(root: string, path: string): boolean {
  if (path.includes("\0") || /^[a-z][a-z\d+.-]+:/iu.test(path) || path.startsWith("~")) return false;
  const [base, asked] = [segments(root), segments(path)];
  if (base === undefined || asked === undefined) return false;
  if (!isAbsolute(path)) return true;
  if (!isAbsolute(root)) return false;
  return base.every((segment, index) => asked[index] === segment);
}

function isAbsolute(path: string): boolean {
  return /^(?:[/\\]|[a-z]:)/iu.test(path);
}

/** The segments of a path, or `undefined` if it leaves its starting folder. A drive letter is an ordinary segment. */
function segments(path: string): readonly string[] | undefined {
  const names: string[] = [];
  for (const name of path.split(/[/\\]+/u)) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

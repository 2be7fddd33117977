/**
 * Whether `path` is `root` or below it, by their names alone: `.` and `..` are worked out, both kinds of slash count, a relative path
 * starts at the root. What no file system takes as a name is outside.
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

/** `undefined`: it climbs above where it starts. A drive is a name like any other. */
function segments(path: string): readonly string[] | undefined {
  const names: string[] = [];
  for (const name of path.split(/[/\\]+/u)) {
    if (name === "" || name === ".") continue;
    if (name !== "..") names.push(name);
    else if (names.pop() === undefined) return undefined;
  }
  return names;
}

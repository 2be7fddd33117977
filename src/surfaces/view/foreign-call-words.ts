import type { ApprovalRequest } from "../../kernel/index.ts";

type Foreign = NonNullable<ApprovalRequest["foreign"]>;

/** Returns the paths outside of its folder that a call of a program names, without duplicates. */
function outsidePaths({ locations = [], diffs = [] }: Foreign): readonly string[] {
  return [...new Set([...locations, ...diffs].filter(({ isOutside }) => isOutside).map(({ path }) => path))];
}

/**
 * Describes line by line what a program reports about its call. The texts are unchanged and may contain hidden
 * characters.
 */
export function foreignCallLines(foreign: Foreign): readonly string[] {
  const { program, title, kind, diffs = [] } = foreign;
  const what = [title, kind === undefined ? undefined : `(${kind})`].filter((each) => each !== undefined);
  const outside = outsidePaths(foreign);
  return [
    `${program} makes this call with a tool of its own${what.length === 0 ? "" : `: ${what.join(" ")}`}`,
    ...outside.map((path) => `OUTSIDE ITS FOLDER: ${path}`),
    ...diffs.flatMap(({ path, diff, isCut }) => [
      `${path}${isCut === true ? " (too long, the rest is missing)" : ""}`,
      ...diff.split("\n"),
    ]),
  ];
}

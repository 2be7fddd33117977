import { readProperty, type JsonValue, type MergeQuestion } from "../../kernel/index.ts";

/** Returns the question of an approval request of the kind `merge`. `null` if its input has another form. */
export function mergeOf(input: JsonValue): MergeQuestion | null {
  const isMerge =
    typeof readProperty(input, "diff") === "string" &&
    Array.isArray(readProperty(readProperty(input, "merge"), "sources"));
  return isMerge ? (input as unknown as MergeQuestion) : null;
}

/** The change of one file in a diff of several files. */
export interface FilePatch {
  /** The name of the file after the change. If the file is deleted, its name before the change. */
  readonly path: string;
  /**
   * Information of git in addition to the hunks, for example that the file is binary, becomes executable, or is a
   * link (mode 120000).
   */
  readonly notes: readonly string[];
  /** The hunks. Empty if there are none. */
  readonly patch: string;
}

/**
 * Returns the changes of a git diff, by file. Every line of the diff is included, except the lines that name the
 * file.
 */
export function filePatches(diff: string): readonly FilePatch[] {
  const found: FilePatch[] = [];
  let lines: string[] = [];
  const end = (): void => {
    if (lines.length > 0) found.push(filePatch(lines));
  };
  // A line ends with "\n" alone: a file may contain other line ends, with what looks like the header of another file.
  for (const line of diff.split("\n")) {
    if (line.startsWith("diff --git ")) {
      end();
      lines = [];
    }
    lines.push(line);
  }
  end();
  return found;
}

function filePatch(lines: readonly string[]): FilePatch {
  const hunk = lines.findIndex((line) => line.startsWith("@@"));
  const header = hunk < 0 ? lines : lines.slice(0, hunk);
  const named = (sign: string): string | undefined =>
    header.find((line) => line.startsWith(sign) && line !== `${sign}/dev/null`)?.slice(sign.length);
  const both = (header[0] ?? "").replace(/^diff --git (.*)$/u, "$1");
  const name = named("+++ ") ?? named("--- ") ?? both.slice(both.length / 2 + 1);
  return {
    path: name.replace(/\t$/u, "").replace(/^("?)[ab]\//u, "$1"),
    notes: header.slice(1).filter((line) => line !== "" && !isName(line)),
    patch: hunk < 0 ? "" : lines.slice(hunk).join("\n").replace(/\n$/u, ""),
  };
}

/** Whether a header line contains only the name and the ids of a file. */
function isName(line: string): boolean {
  return /^(?:index |--- |\+\+\+ |new file mode 100644$)/u.test(line);
}

/** Returns the lines that show a merge to a person in a terminal: the files and their changes. */
export function mergeLines({ diff, isCut }: MergeQuestion): readonly string[] {
  const files = filePatches(diff).flatMap(({ path, notes, patch }) => [
    `${path}:`,
    ...notes,
    ...(patch === "" ? [] : patch.split("\n")),
  ]);
  return [...files, ...(isCut === true ? ["[the rest of the diff is too long to be shown]"] : [])];
}

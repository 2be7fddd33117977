import { readProperty, type JsonValue, type MergeQuestion } from "../../kernel/index.ts";

/** The question of an approval request of the kind `merge`. `null` if its input has another form. */
export function mergeOf(input: JsonValue): MergeQuestion | null {
  const isMerge =
    typeof readProperty(input, "diff") === "string" &&
    Array.isArray(readProperty(readProperty(input, "merge"), "sources"));
  return isMerge ? (input as unknown as MergeQuestion) : null;
}

/** The change of one file in a diff of several files. */
export interface FilePatch {
  /** The name of the file after the change, or before it if the file is deleted. */
  readonly path: string;
  /** The hunks, or what git says in their place, such as that the file is binary. */
  readonly patch: string;
}

/** The changes of a diff of git, by file. */
export function filePatches(diff: string): readonly FilePatch[] {
  return diff
    .split(/^(?=diff --git )/mu)
    .filter((part) => part.startsWith("diff --git "))
    .map((part) => {
      const lines = part.split("\n");
      const hunk = lines.findIndex((line) => line.startsWith("@@"));
      const header = hunk < 0 ? lines : lines.slice(0, hunk);
      const named = (sign: string): string | undefined =>
        header.find((line) => line.startsWith(sign) && !line.endsWith("/dev/null"))?.slice(sign.length + 2);
      const path = named("+++ ") ?? named("--- ") ?? (header[0] ?? "").replace(/^diff --git a\/.* b\//u, "");
      const body =
        hunk < 0 ? header.slice(1).filter((line) => !line.startsWith("index ")) : lines.slice(hunk);
      return { path, patch: body.join("\n").trimEnd() };
    });
}

/** The lines with which a person in a terminal sees a merge: the files and their changes. */
export function mergeLines({ diff, isCut }: MergeQuestion): readonly string[] {
  const files = filePatches(diff).flatMap(({ path, patch }) => [`${path}:`, ...patch.split("\n")]);
  return [...files, ...(isCut === true ? ["[the rest of the diff is too long to be shown]"] : [])];
}

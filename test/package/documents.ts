import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "../gates/run-node.ts";

/** The documents of the package. `examples/first-steps/workspace` is a folder to copy, whose files are documents of a user. */
const documentPatterns = [
  "README.md",
  "CHANGELOG.md",
  "docs/**/*.md",
  "examples/README.md",
  "examples/*/README.md",
];

/** Text of README.md, CHANGELOG.md, every page of `docs` and every overview of `examples`, by path from the repository's root, in alphabetical order. */
export async function readDocuments(): Promise<Readonly<Record<string, string>>> {
  const documents: Record<string, string> = {};
  for (const name of await filesMatching(documentPatterns))
    documents[name] = await readFile(join(repository, name), "utf8");
  return documents;
}

/** Paths of the files that match a pattern, from the repository's root, in alphabetical order. */
export async function filesMatching(patterns: readonly string[]): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const name of glob(patterns, { cwd: repository })) names.push(name);
  return names.toSorted();
}

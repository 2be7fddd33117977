import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "../gates/run-node.ts";

/** Text of README.md, CHANGELOG.md and every page of `docs`, by path from the repository's root, in alphabetical order. */
export async function readDocuments(): Promise<Readonly<Record<string, string>>> {
  const documents: Record<string, string> = {};
  for (const name of await filesMatching(["README.md", "CHANGELOG.md", "docs/**/*.md"]))
    documents[name] = await readFile(join(repository, name), "utf8");
  return documents;
}

/** Paths of the files that match a pattern, from the repository's root, in alphabetical order. */
export async function filesMatching(patterns: readonly string[]): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const name of glob(patterns, { cwd: repository })) names.push(name);
  return names.toSorted();
}

import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { isAbsent, isFolder, readTextFile } from "../text/bounded-file.ts";
import { contentHash, Coverage } from "./coverage.ts";

/** Maximum size in bytes of a text that gets its own hash. */
const maxBytes = 256 * 1024;

/** Returns the hash of a text in the form in which `readTextFile` returns the text. */
export function textHash(text: string): string {
  return contentHash(text);
}

/**
 * Returns the hash of the folder of a skill. It covers the whole folder, because a skill may approve the use of its
 * own scripts in advance.
 */
export async function skillHash(folder: string, project: string): Promise<string> {
  const coverage = new Coverage(project);
  await coverage.addFolder(folder);
  return coverage.hash();
}

/**
 * Returns the hashes of the texts of a project that have more effect than their words: agents in Markdown,
 * `SYSTEM.md` and the folders of skills. A decision of trust stores them by their paths in the project.
 */
export async function textHashes(project: string): Promise<Readonly<Record<string, string>>> {
  const hashes: [string, string][] = [];
  const agents = await namesIn(join(project, ".reeve/agents"));
  const texts = agents.flatMap((name) =>
    name.endsWith(".md") ? [join(project, ".reeve/agents", name)] : [],
  );
  for (const path of [...texts, join(project, ".reeve/SYSTEM.md")]) {
    // A file that cannot be read is not used either.
    const file = await readTextFile(path, { maxBytes, within: project }).catch(() => undefined);
    if (file !== undefined) hashes.push([relative(project, path), textHash(file.text)]);
  }
  for (const place of [".reeve", ".agents", ".claude"]) {
    const parent = join(project, place, "skills");
    for (const name of await namesIn(parent)) {
      const folder = join(parent, name);
      if (await isFolder(folder)) hashes.push([relative(project, folder), await skillHash(folder, project)]);
    }
  }
  return Object.fromEntries(hashes);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isAbsent(error)) return [];
    throw error;
  }
}

import { Fault } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";
import { readBytes } from "./file-lines.ts";

/** Maximum number of bytes of a `.gitignore` that are read. */
const maxBytes = 65_536;

/** Globs of files that searches leave out in every folder. */
export const alwaysIgnored: readonly string[] = ["**/.git", "**/.git/**", "**/node_modules/**"];

/**
 * Returns globs, relative to the root, of files that searches leave out: `.git`, `node_modules`, and the files that the
 * root's `.gitignore` excludes. Lines with `!` are ignored, so the files that they would include again stay out.
 */
export async function ignoredFiles(root: FileRoot): Promise<readonly string[]> {
  return [...alwaysIgnored, ...(await gitIgnored(root))];
}

async function gitIgnored(root: FileRoot): Promise<readonly string[]> {
  try {
    const { folder, file } = await root.read(".gitignore");
    try {
      const text = Buffer.from(await readBytes(file, 0, maxBytes)).toString("utf8");
      return text.split(/\r?\n/).flatMap(globsOf);
    } finally {
      await file.close();
      await folder.close();
    }
  } catch (error) {
    // There is no .gitignore, or it is not a regular file: then it excludes nothing.
    if (Fault.is(error)) return [];
    throw error;
  }
}

/** Returns the globs of one line of a `.gitignore`: for the named path and everything below it. */
function globsOf(line: string): readonly string[] {
  const rule = line.replace(/(?<!\\)\s+$/, "");
  if (rule === "" || rule.startsWith("#") || rule.startsWith("!")) return [];
  const path = rule.replace(/^\\(?=[#!])/, "").replace(/\/+$/, "");
  const isFolder = rule.endsWith("/");
  const anchored = path.includes("/") ? path.replace(/^\//, "") : `**/${path}`;
  if (anchored === "" || anchored === "**/") return [];
  return isFolder ? [`${anchored}/**`] : [anchored, `${anchored}/**`];
}

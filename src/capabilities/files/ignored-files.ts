import { Fault } from "../../kernel/index.ts";
import type { FileRoot } from "./file-root.ts";
import { readBytes } from "./file-lines.ts";

/** A list longer than this is not read. */
const maxBytes = 65_536;

/**
 * What searches leave out, as globs from the root: `.git`, `node_modules`, and what the root's `.gitignore` says. Lines with `!` are not
 * understood: what they let back in stays out.
 */
export async function ignoredFiles(root: FileRoot): Promise<readonly string[]> {
  return ["**/.git", "**/.git/**", "**/node_modules/**", ...(await gitIgnored(root))];
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
    // There is none, or what has its name is no file of ours: then nothing is left out by it.
    if (Fault.is(error)) return [];
    throw error;
  }
}

/** The globs of one line, for what it names and all below. */
function globsOf(line: string): readonly string[] {
  const rule = line.replace(/(?<!\\)\s+$/, "");
  if (rule === "" || rule.startsWith("#") || rule.startsWith("!")) return [];
  const path = rule.replace(/^\\(?=[#!])/, "").replace(/\/+$/, "");
  const isFolder = rule.endsWith("/");
  const anchored = path.includes("/") ? path.replace(/^\//, "") : `**/${path}`;
  if (anchored === "" || anchored === "**/") return [];
  return isFolder ? [`${anchored}/**`] : [anchored, `${anchored}/**`];
}

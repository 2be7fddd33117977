import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FileReader, isRegularFile, type TextFile } from "../text/bounded-file.ts";
import type { Notices } from "../notices.ts";

/** A file with instructions for all agents that work in its folder. */
export interface InstructionFile {
  readonly path: string;
  readonly text: string;
}

/** Names of the files with instructions. The first one that exists in a folder is read. */
const names = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];

/** Maximum size of one file, and of all files together, in bytes. */
const maxFileBytes = 64 * 1024;
const maxTotalBytes = 192 * 1024;

/**
 * Reads the instructions that apply in the working folder: first those of the user, then those of each folder from
 * the root down to the working folder. A file that is too long is cut with a notice, which the model sees as well.
 * If all files together are too long, the files that are farthest from the working folder are left out.
 */
export async function readInstructionFiles(
  { home, root, cwd }: { readonly home: string; readonly root: string; readonly cwd: string },
  notices: Notices,
): Promise<readonly InstructionFile[]> {
  const folders = [{ folder: home }, ...chain(root, cwd).map((folder) => ({ folder, within: root }))];
  const files: TextFile[] = [];
  for (const { folder, ...options } of folders) {
    const file = await firstIn(folder, options, notices);
    if (file !== undefined) files.push(file);
  }
  return withinTotal(files, notices).map(({ path, text, bytes, isCut }) => ({
    path,
    text: isCut ? `${text.trim()}\n\n${cutNotice(bytes)}` : text.trim(),
  }));
}

async function firstIn(
  folder: string,
  options: { readonly within?: string },
  notices: Notices,
): Promise<TextFile | undefined> {
  for (const name of names) {
    const path = join(folder, name);
    if (!(await exists(path))) continue;
    const file = await new FileReader(notices).read(path, { maxBytes: maxFileBytes, ...options });
    if (file === undefined) continue;
    if (file.isCut)
      notices.add("cut", path, `only its first ${maxFileBytes} of ${file.bytes} bytes are used`);
    if (file.text.trim() !== "") return file;
  }
  return undefined;
}

/**
 * Whether a file exists. A link that cannot be followed counts as existing, so that the code that reads it reports
 * the problem.
 */
async function exists(path: string): Promise<boolean> {
  return (await isRegularFile(path)) || (await isLink(path));
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink();
  } catch {
    // Nothing exists under the path.
    return false;
  }
}

function cutNotice(bytes: number): string {
  return `[This file is cut: it has ${bytes} bytes, of which the first ${maxFileBytes} are shown.]`;
}

function withinTotal(files: readonly TextFile[], notices: Notices): readonly TextFile[] {
  let left = maxTotalBytes;
  const kept = files.toReversed().filter(({ path, text }) => {
    left -= Buffer.byteLength(text);
    if (left >= 0) return true;
    notices.add(
      "cut",
      path,
      `the instructions together are longer than ${maxTotalBytes} bytes; this file is left out`,
    );
    return false;
  });
  return kept.toReversed();
}

/** Returns the folders from the root to the working folder. */
function chain(root: string, cwd: string): readonly string[] {
  const folders = [cwd];
  for (let folder = cwd; folder !== root && dirname(folder) !== folder;) {
    folder = dirname(folder);
    folders.unshift(folder);
  }
  return folders;
}

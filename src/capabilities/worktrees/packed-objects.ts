import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { inflate } from "node:zlib";
import { absent } from "../files/error-code.ts";
import { git, gitText, type GitPlace } from "./git.ts";

/** Size, in bytes, of objects that stay loose. */
const largest = 256 * 1024 * 1024;

/**
 * The file extensions of a pack in the order in which its files are moved. The index comes last, because git then
 * finds the pack.
 */
const moved = [".pack", ".rev", ".idx"] as const;

/**
 * Puts the loose objects of a repository, which are single files, into a pack. The sandbox of a task lets it write
 * loose objects, and thus replace or delete those of the user. It can only read packs, and git prefers them.
 *
 * Loose objects that are damaged, or whose name is not that of their content because an agent has forged them, stay
 * loose. The names in the pack are computed from the contents, in case an object is forged during the call. A
 * repeated call changes nothing.
 */
export async function packObjects(commonDir: string): Promise<void> {
  const place: GitPlace = { path: commonDir, gitDir: commonDir, commonDir };
  const ids = await looseObjects(join(commonDir, "objects"));
  if (ids.length === 0) return;
  const packs = join(commonDir, "objects", "pack");
  const folder = await mkdtemp(join(packs, "tmp_reeve_"));
  try {
    const draft = join(folder, "pack");
    const input = `${ids.join("\n")}\n`;
    const pack = await gitText(place, ["pack-objects", "--quiet", "--incremental", draft], { input });
    if (pack !== "") {
      const name = `pack-${pack}`;
      for (const end of [".idx", ".rev"]) await rm(join(folder, `${name}${end}`), { force: true });
      await git(place, ["index-pack", join(folder, `${name}.pack`)]);
      for (const end of moved)
        await rename(join(folder, `${name}${end}`), join(packs, `${name}${end}`)).catch(absent);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  await git(place, ["prune-packed", "--quiet"]);
}

async function looseObjects(objects: string): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const start of await readdir(objects)) {
    if (!/^[0-9a-f]{2}$/u.test(start)) continue;
    for (const end of (await readdir(join(objects, start)).catch(absent)) ?? []) {
      const id = `${start}${end}`;
      if (/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/u.test(id) && (await isWhole(join(objects, start, end), id)))
        ids.push(id);
    }
  }
  return ids;
}

/** Whether the content of a loose object matches its name. */
async function isWhole(file: string, id: string): Promise<boolean> {
  const stored = await readFile(file).catch(absent);
  if (stored === undefined) return false;
  // A damaged object cannot be read; git says so when it is needed.
  const content = await promisify(inflate)(stored, { maxOutputLength: largest }).catch(() => undefined);
  const algorithm = id.length === 40 ? "sha1" : "sha256";
  return content !== undefined && createHash(algorithm).update(content).digest("hex") === id;
}

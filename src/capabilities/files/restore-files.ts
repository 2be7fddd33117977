import { constants } from "node:fs";
import { lstat, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  Fault,
  is,
  maxKeptBytes,
  optionTable,
  type FileChange,
  type KeptFile,
  type OptionKinds,
} from "../../kernel/index.ts";
import { isInside } from "./control-references.ts";
import { codeOf } from "./error-code.ts";
import { readBytes } from "./file-lines.ts";
import { FileRoot, fileFault, openRegular, type Place } from "./file-root.ts";
import { sha256 } from "./previous-content.ts";
import { fileState, removeFile, replaceFile, type FileState } from "./replace-file.ts";

/** Options of `restoreFiles()`. */
export interface RestoreFilesOptions {
  /** Folders whose files may be restored. Changes elsewhere are reported with the state `outside`. */
  readonly folders: readonly string[];
  /** Whether files are written. Default: `false`, which only reports what would happen. */
  readonly apply?: boolean;
  /**
   * The files that may be written, as an earlier call has reported them. A file whose content differs from
   * `presentHash` is not changed. Default: all files.
   */
  readonly only?: readonly Pick<RestoredFile, "path" | "presentHash">[];
}

/**
 * What happens to a file.
 *
 * - `restorable`, `restored`: the file gets its previous content, or is deleted if it did not exist before.
 * - `same`: the file has its previous content already.
 * - `changed`: another program or person changed the file after the first change or after the last one, or replaced
 *   it or one of its folders by a link. The file is not changed, and the link is not followed.
 * - `not_kept`: the previous content was too large, or could not be read.
 * - `outside`: the file is in none of the folders.
 * - `failed`: the file could not be read or written. `reason` says why.
 */
export type RestoreState = "restorable" | "restored" | "same" | "changed" | "not_kept" | "outside" | "failed";

/** A file that tools changed. */
export interface RestoredFile {
  /** Real absolute path. */
  readonly path: string;
  readonly state: RestoreState;
  /** Whether the file did not exist before, so that restoring deletes it. */
  readonly wasAbsent: boolean;
  /** SHA-256 of the content before this call, in hexadecimal. `null` if the file does not exist, or was not read. */
  readonly presentHash: string | null;
  /** The present content compared with the previous one, as a unified diff. Empty for binary files, and if nothing changes. */
  readonly diff: string;
  /** Why the file is not changed. Empty if it is restored. */
  readonly reason: string;
}

const knownOptions = optionTable({
  folders: is.list({ of: is.text() }),
  apply: is.boolean({ default: false }),
  only: is.list({ of: is.any }),
} satisfies OptionKinds<RestoreFilesOptions>);

/** Maximum length of a diff, in characters. */
const maxDiff = 65_536;

/**
 * Restores the files that the tools `write` and `edit` changed, to what they contained before the first of the
 * changes. The changes are those of `runtime.sessions.fileChanges()`. A file that another program or person has
 * changed is not touched. If the process dies, each file is either restored or unchanged, and the next call
 * restores the other files.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { restoreFiles } from "reeve/tools";
 *
 * const runtime = await openRuntime({ store: "sqlite:./reeve.db" });
 * const { changes } = await runtime.sessions.fileChanges("session_1", "run_1/input");
 * for (const { path, diff } of await restoreFiles(changes, { folders: ["./workspace"] })) console.log(path, diff);
 * await restoreFiles(changes, { folders: ["./workspace"], apply: true });
 * ```
 */
export async function restoreFiles(
  changes: readonly FileChange[],
  options: RestoreFilesOptions,
): Promise<readonly RestoredFile[]> {
  const { folders, apply } = knownOptions.read("restoreFiles()", options);
  const shown = options.only && new Map(options.only.map((each) => [each.path, each.presentHash]));
  const roots = await Promise.all(
    folders.map(async (folder) => {
      const root = new FileRoot(folder);
      return { root, path: await root.path() };
    }),
  );
  const restored: RestoredFile[] = [];
  for (const [path, chain] of Map.groupBy(changes, (change) => change.path)) {
    const wasAbsent = chain[0]?.before.kind === "absent";
    const inside = roots.find((each) => isInside(path, each.path));
    try {
      const rest =
        inside === undefined
          ? stays("outside", "the file is outside of the folders")
          : await restore(inside.root, path, { chain, apply: apply && shown?.has(path) !== false, shown });
      restored.push({ path, wasAbsent, ...rest });
    } catch (error) {
      const { message } = Fault.from(fileFault(error, path));
      restored.push({ path, wasAbsent, ...stays("failed", message) });
    }
  }
  return restored;
}

type Outcome = Pick<RestoredFile, "state" | "diff" | "reason" | "presentHash">;

interface Restoration {
  readonly chain: readonly FileChange[];
  readonly apply: boolean;
  /** The content of the files that may be written, as it was shown to a person. `undefined` if nothing was shown. */
  readonly shown: ReadonlyMap<string, string | null> | undefined;
}

/** The current content of a file. `null` if it does not exist. */
interface Present {
  readonly state: FileState;
  /** The bytes of the file. `null` for a file that is too large to be one whose content a tool has kept. */
  readonly bytes: Uint8Array | null;
}

async function restore(root: FileRoot, path: string, { chain, apply, shown }: Restoration): Promise<Outcome> {
  const [first] = chain;
  if (first === undefined) throw new Fault("invalid_argument", "expected at least one change of a file");
  const { before } = first;
  if (before.kind === "not_kept") return stays("not_kept", keptReasons[before.reason]);
  if (await isLinked(path)) return stays("changed", linked);
  const place = await placeOf(root, path, apply);
  try {
    // A link may have been put there since.
    if (place !== null && join(place.folder.path, place.name) !== path) return stays("changed", linked);
    const present = place === null ? null : await presentContent(place);
    const previous = contentOf(before);
    const hash = present === null ? null : present.bytes && sha256(present.bytes);
    if (present === null ? previous === null : previous !== null && hash === first.beforeHash)
      return stays("same", "the file has its previous content");
    const states = statesOf(chain);
    if (states === undefined)
      return stays("changed", "another program or person changed the file between two changes");
    if (present !== null && (hash === null || !states.has(hash)))
      return stays("changed", "another program or person has changed the file since");
    if (apply && shown !== undefined && shown.get(path) !== hash)
      return stays("changed", "the file has changed since it was shown");
    const diff = await diffOf(path, present?.bytes ?? null, previous);
    const outcome = { diff, reason: "", presentHash: hash };
    if (!apply || place === null) return { state: "restorable", ...outcome };
    if (previous !== null) await replaceFile(place, previous, present?.state ?? null);
    else if (present !== null) await removeFile(place, present.state);
    return { state: "restored", ...outcome };
  } catch (error) {
    // The file was changed between the comparison and its replacement.
    if (Fault.is(error) && error.code === "already_exists")
      return stays("changed", "another program or person has changed the file since");
    throw error;
  } finally {
    await place?.folder.close();
  }
}

const linked = "a link has taken the place of the file or of one of its folders";

/**
 * Whether a path now leads to another place than when it was recorded, because one of its parts has become a link.
 * Parts that do not exist are not links.
 */
async function isLinked(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink() || (await realpath(path)) !== path;
  } catch (error) {
    if (codeOf(error) !== "ENOENT" && codeOf(error) !== "ENOTDIR") throw error;
    const parent = dirname(path);
    return parent !== path && isLinked(parent);
  }
}

/** Returns the place of the file. `null` if its folder does not exist and must not be created. */
async function placeOf(root: FileRoot, path: string, create: boolean): Promise<Place | null> {
  try {
    return await root.place(path, { write: true, create });
  } catch (error) {
    if (Fault.is(error) && error.code === "not_found") return null;
    throw error;
  }
}

function stays(state: RestoreState, reason: string): Outcome {
  return { state, diff: "", reason, presentHash: null };
}

const keptReasons = {
  too_large: `the previous content had more than ${maxKeptBytes} bytes`,
  unreadable: "the previous content could not be read",
} as const;

/**
 * Returns the hashes that the file had before and after the changes. `undefined` if another program wrote the file
 * between two changes, because that content would be lost. If the file was only deleted in between, no content is
 * lost.
 */
function statesOf(chain: readonly FileChange[]): ReadonlySet<string> | undefined {
  const states = new Set<string>();
  for (const { before, beforeHash, afterHash } of chain) {
    if (states.size > 0 && before.kind !== "absent" && (beforeHash === null || !states.has(beforeHash)))
      return undefined;
    if (beforeHash !== null) states.add(beforeHash);
    states.add(afterHash);
  }
  return states;
}

async function presentContent(place: Place): Promise<Present | null> {
  const state = await fileState(place);
  if (state === null) return null;
  // A tool writes at most as much as it keeps, or a little more: a larger file is not one of its own.
  if (state.size > 4 * maxKeptBytes) return { state, bytes: null };
  const file = await openRegular(place, place.shown, constants.O_RDONLY);
  try {
    return { state, bytes: await readBytes(file, 0, Number(state.size)) };
  } finally {
    await file.close();
  }
}

/** Returns the previous bytes of a file. `null` if it did not exist. */
function contentOf(before: Exclude<KeptFile, { readonly kind: "not_kept" }>): Uint8Array | null {
  if (before.kind === "absent") return null;
  return before.kind === "text" ? Buffer.from(before.text) : Buffer.from(before.base64, "base64");
}

async function diffOf(
  path: string,
  present: Uint8Array | null,
  previous: Uint8Array | null,
): Promise<string> {
  const [now, then] = [textOf(present), textOf(previous)];
  if (now === undefined || then === undefined) return "";
  const { createPatch } = await import("diff");
  const diff = createPatch(path, now, then, undefined, undefined, { context: 3, timeout: 200 }) ?? "";
  return diff.length > maxDiff ? `${diff.slice(0, maxDiff)}\n[cut]` : diff;
}

/** Returns the text of a file. `undefined` for a binary file. */
function textOf(bytes: Uint8Array | null): string | undefined {
  if (bytes === null) return "";
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return Buffer.from(text).equals(bytes) ? text : undefined;
}

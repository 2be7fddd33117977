import { randomUUID } from "node:crypto";
import { existsSync, linkSync, lstatSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { reeveHome } from "../../../capabilities/files/reeve-home.ts";
import { Fault, type Store } from "../../../kernel/index.ts";
import { openStore, readOnlyPlace, sqlitePath } from "../../../runtime/index.ts";
import { isBelow, makeFolder, StoreList } from "../../../workspace/files/index.ts";
import { defaultStore } from "./default-store.ts";

export interface OwnStoreOptions {
  /**
   * Whether a store that others created is also opened. Only commands that execute no runs may set this. Default:
   * `false`.
   */
  readonly allowForeign?: boolean;
  /**
   * Whether a store is refused if it is a link to a place outside of its folder. Default: `true` for the default
   * address, which is in the current folder.
   */
  readonly refusesLinks?: boolean;
  /** Receives a warning for the person. Default: the warning is emitted as a process warning. */
  readonly onWarning?: (text: string) => void;
  /** Milliseconds after which changes by other processes are noticed. Default: the default of the store. */
  readonly watchEveryMs?: number;
}

/** The record that holds the id of a store. */
export const storeIdentity = { namespace: "store-identity", key: "id" } as const;

/**
 * Opens a store whose runs this process may execute, and creates it, with its folder, if it does not exist. A store that no
 * command of the user created, such as one that came with a repository, is refused with `permission_denied`: the settings
 * of its runs decide where the user's key is sent and which tools run. `reeve trust` accepts it.
 */
export async function openOwnStore(address: string, options: OwnStoreOptions = {}): Promise<Store> {
  const path = pathOf(address);
  const { watchEveryMs } = options;
  const open = (): Promise<Store> =>
    openStore(address, { ...(watchEveryMs !== undefined && { watchEveryMs }) });
  if (path === undefined) return open();
  const { allowForeign = false, onWarning = (text) => process.emitWarning(text) } = options;
  const { refusesLinks = address === defaultStore } = options;
  refuseFileAsFolder(path);
  if (refusesLinks) refuseLink(path);
  if (isNew(path)) await createStore(path, onWarning);
  const store = await open();
  try {
    const reason = allowForeign ? undefined : await foreignReason(store, path);
    if (reason !== undefined) throw foreign(path, reason, address);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Returns why the runs of an existing store are not executed. `undefined` if the store belongs to the user, or is
 * not a file.
 */
export async function whyForeign(address: string): Promise<string | undefined> {
  const path = pathOf(address);
  if (path === undefined || isNew(path)) return undefined;
  const store = await openStore(address);
  try {
    return await foreignReason(store, path);
  } finally {
    await store.close();
  }
}

/**
 * Accepts a store that others created. The store gets a new id, so that a copy has a different id than its
 * original.
 */
export async function acceptStore(address: string): Promise<void> {
  const path = pathOf(address);
  if (path === undefined) return;
  await identifyAt(path, await storeList().add(realpathSync(path)));
}

/** Removes a store from the user's own stores. Returns whether it was one of them. */
export async function disownStore(address: string): Promise<boolean> {
  const path = pathOf(address);
  if (path === undefined || isNew(path)) return false;
  const store = await openStore(address);
  try {
    const id = await idIn(store);
    if ((await storeList().find(id)) === undefined) return false;
    await storeList().remove(id as string);
    return true;
  } finally {
    await store.close();
  }
}

function storeList(): StoreList {
  return new StoreList(reeveHome());
}

/** Returns the file path of a store. `undefined` for a store that is not a file. */
function pathOf(address: string): string | undefined {
  const path = sqlitePath(address);
  return path === undefined || path === ":memory:" ? undefined : resolve(path);
}

function isNew(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0;
}

/**
 * Creates a store with an id. The id is written into the file and into the user's list before the file gets its
 * final name. Therefore a crash at any moment leaves no store that the next command would refuse.
 */
async function createStore(path: string, onWarning: (text: string) => void): Promise<void> {
  await makeFolder(dirname(path)).catch((error: unknown) => {
    throw readOnlyPlace(path, error) ?? error;
  });
  // An empty file contains nothing foreign. Another process may be creating it, so it stays in its place.
  const isEmptyFile = existsSync(path);
  if (!isEmptyFile) refuseLeftovers(path);
  const list = storeList();
  const id = await listed(list, path, onWarning);
  const temporary = isEmptyFile ? path : `${path}-new-${randomUUID()}`;
  try {
    await identifyAt(temporary, id, "absent");
    if (!isEmptyFile) giveName(temporary, path);
  } catch (error) {
    if (id !== undefined) await list.remove(id);
    // Another process was faster. Its store is opened.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    if (!isEmptyFile) rmSync(temporary, { force: true });
  }
}

/**
 * Throws if files of SQLite exist without their store, because SQLite would apply the changes in these files to the
 * new store.
 */
function refuseLeftovers(path: string): void {
  const found = ["-wal", "-journal"].map((ending) => path + ending).find((each) => existsSync(each));
  if (found !== undefined)
    throw new Fault(
      "permission_denied",
      `${found} belongs to a store that does not exist, and would change the new one; delete the file`,
    );
}

/** Renames a new store to its final name. Throws `EEXIST` if another process was faster. */
function giveName(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST" || existsSync(path)) throw error;
    // The file system has no hard links.
    renameSync(temporary, path);
  }
}

/**
 * Writes the id into a store. If `expected` is `absent`, the id is written only if the store has none; an existing
 * id is kept.
 */
async function identifyAt(path: string, id: string | undefined, expected?: "absent"): Promise<void> {
  const store = await openStore(`sqlite:${path}`);
  try {
    if (id === undefined) return;
    const { records } = store;
    await records.put(
      { ...storeIdentity, value: id },
      expected ?? (await records.get(storeIdentity))?.version ?? "absent",
    );
  } finally {
    await store.close();
  }
}

/**
 * Adds a new store to the user's list. If the home folder cannot be written, as on some CI systems, the run
 * continues nevertheless.
 */
async function listed(
  list: StoreList,
  path: string,
  onWarning: (text: string) => void,
): Promise<string | undefined> {
  try {
    return await list.add(join(realpathSync(dirname(path)), basename(path)));
  } catch (error) {
    onWarning(
      `${list.folder} cannot be written (${(error as Error).message}), so later commands do not know that the store ${path} is yours; set REEVE_HOME to a folder that can be written`,
    );
    return undefined;
  }
}

async function idIn({ records }: Store): Promise<unknown> {
  return (await records.get(storeIdentity))?.value;
}

const unknown = "no command of yours created it, so it may have come with the folder";

async function foreignReason(store: Store, path: string): Promise<string | undefined> {
  const id = await idIn(store);
  const list = storeList();
  const known = await list.find(id);
  if (known === undefined) return unknown;
  const real = realpathSync(path);
  if (known.path === real) return undefined;
  if ((await idAt(known.path)) === id) return `it is a copy of ${known.path}`;
  // The store was moved.
  await list.put(id as string, { path: real });
  return undefined;
}

async function idAt(path: string): Promise<unknown> {
  if (isNew(path)) return undefined;
  const store = await openStore(`sqlite:${path}`);
  try {
    return await idIn(store);
  } finally {
    await store.close();
  }
}

/** Throws if the folder of a store, or a folder above it, is actually a file. */
function refuseFileAsFolder(path: string): void {
  let folder = dirname(path);
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  if (statSync(folder).isDirectory()) return;
  throw new Fault(
    "invalid_argument",
    `${folder} is a file, and the store ${path} needs a folder of this name; move the file, or use another store with --store sqlite:PATH`,
  );
}

/** Throws if the store of a folder is a link to another place, such as the store of another project of the user. */
export function refuseLink(path: string): void {
  const folder = dirname(path);
  const links = [folder, path].filter((each) => lstatSync(each, { throwIfNoEntry: false })?.isSymbolicLink());
  for (const link of links)
    if (!isBelow(targetOf(link), realpathSync(dirname(folder))))
      throw new Fault(
        "permission_denied",
        `${link} is a link that leads out of the folder; name the store with --store sqlite:PATH`,
      );
}

/**
 * Returns the target of a link. For a link without a target, returns the root of the file system, which is outside
 * of every folder.
 */
function targetOf(link: string): string {
  try {
    return realpathSync(link);
  } catch {
    return "/";
  }
}

function foreign(path: string, reason: string, address: string): Fault {
  const accept = address === defaultStore ? "reeve trust" : `reeve trust --store ${address}`;
  return new Fault(
    "permission_denied",
    `the runs of the store ${path} are not executed: ${reason}; look at them with reeve ps --all, accept the store with ${accept}, or use another one with --store sqlite:PATH`,
  );
}

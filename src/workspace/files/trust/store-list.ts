import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Fault } from "../../../kernel/index.ts";
import { readNamedFile } from "../text/bounded-file.ts";
import { replaceText } from "../text/replace-text.ts";

/** A store that the user created with a command, or accepted. */
export interface ListedStore {
  /** Path of the store's file, with links followed, when a command last used it. */
  readonly path: string;
}

const maxBytes = 65_536;

/**
 * The stores whose runs the commands of the user execute: one file per store in `~/.reeve/stores`, named after the id that
 * the store contains. A file per store needs no lock between processes.
 */
export class StoreList {
  readonly folder: string;

  constructor(home: string) {
    this.folder = join(home, "stores");
  }

  /** Adds a store and returns its new id. */
  async add(path: string): Promise<string> {
    const id = randomUUID();
    await this.put(id, { path });
    return id;
  }

  async put(id: string, store: ListedStore): Promise<void> {
    await replaceText(this.#file(id), `${JSON.stringify(store)}\n`);
  }

  /**
   * Returns the store with this id. `undefined` for an unknown or invalid id, because a file from elsewhere may
   * contain any id.
   */
  async find(id: unknown): Promise<ListedStore | undefined> {
    if (typeof id !== "string" || !idForm.test(id)) return undefined;
    const path = this.#file(id);
    const file = await readNamedFile("file", path, { maxBytes });
    if (file === undefined) return undefined;
    try {
      const value = JSON.parse(file.text) as Partial<ListedStore> | null;
      if (typeof value?.path === "string") return { path: value.path };
    } catch (cause) {
      throw invalid(path, cause);
    }
    throw invalid(path);
  }

  /** Removes a store, if it is listed. */
  async remove(id: string): Promise<void> {
    await rm(this.#file(id), { force: true });
  }

  #file(id: string): string {
    if (!idForm.test(id)) throw new Fault("invalid_argument", `invalid id of a store ${JSON.stringify(id)}`);
    return join(this.folder, `${id}.json`);
  }
}

const idForm = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;

function invalid(path: string, cause?: unknown): Fault {
  return new Fault(
    "invalid_argument",
    `invalid file ${path}: expected an object with a path; delete it, and accept the store with reeve trust`,
    { cause },
  );
}

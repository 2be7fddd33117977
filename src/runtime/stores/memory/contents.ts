import {
  Fault,
  type ContentOwner,
  type Contents,
  type Hash,
  type SessionId,
  type SessionOwner,
} from "../../../kernel/index.ts";
import type { Tables } from "./tables.ts";

interface Content {
  /** Tenant and hash. */
  readonly key: string;
  readonly bytes: Uint8Array;
  /** The owners by their text. */
  readonly owners: Map<string, ContentOwner>;
}

/** N6: returns the owner of a session; `undefined` if the session does not exist. */
type FindSessionOwner = (sessionId: SessionId) => SessionOwner | undefined;

/**
 * F1: contents that applications put into the memory store. Records, entries and events share large values by
 * reference instead.
 */
export class MemoryContents implements Contents {
  readonly #contents = new Map<string, Content>();
  readonly #ofOwner = new Map<string, Set<Content>>();
  readonly #tables: Tables;
  readonly #hash: Hash;
  readonly #ownerOf: FindSessionOwner;

  constructor(tables: Tables, hash: Hash, ownerOf: FindSessionOwner) {
    this.#tables = tables;
    this.#hash = hash;
    this.#ownerOf = ownerOf;
  }

  async put(owner: ContentOwner, bytes: Uint8Array): Promise<string> {
    const hash = this.#hash(bytes);
    const key = this.#keyFor(owner, hash);
    const content = this.#contents.get(key) ?? { key, bytes: bytes.slice(), owners: new Map() };
    this.#contents.set(key, content);
    this.#add(owner, content);
    return hash;
  }

  async get(owner: ContentOwner, hash: string): Promise<Uint8Array | undefined> {
    return this.#find(owner, hash)?.bytes.slice();
  }

  async share(
    hash: string,
    { from, to }: { readonly from: ContentOwner; readonly to: ContentOwner },
  ): Promise<void> {
    const key = this.#keyFor(to, hash);
    const content = this.#find(from, hash);
    if (content?.key !== key)
      throw new Fault("not_found", `content ${hash} does not exist for ${textOf(from)}`);
    this.#add(to, content);
  }

  async release(owner: ContentOwner, hash: string): Promise<void> {
    const content = this.#find(owner, hash);
    if (content !== undefined) this.#remove(textOf(owner), content);
  }

  async owners(owner: ContentOwner, hash: string): Promise<readonly ContentOwner[]> {
    return [...(this.#find(owner, hash)?.owners.values() ?? [])];
  }

  /** Ends all ownership of a run or session. The store calls this when it deletes that run or session. */
  releaseNow(owner: ContentOwner): void {
    const text = textOf(owner);
    for (const content of this.#ofOwner.get(text) ?? []) this.#remove(text, content);
  }

  #find(owner: ContentOwner, hash: string): Content | undefined {
    const text = textOf(owner);
    if (!this.#ofOwner.has(text)) return undefined;
    const content = this.#contents.get(this.#keyFor(owner, hash));
    return content?.owners.has(text) === true ? content : undefined;
  }

  #add(owner: ContentOwner, content: Content): void {
    const text = textOf(owner);
    content.owners.set(text, owner);
    const owned = this.#ofOwner.get(text);
    if (owned === undefined) this.#ofOwner.set(text, new Set([content]));
    else owned.add(content);
  }

  #remove(owner: string, content: Content): void {
    content.owners.delete(owner);
    if (content.owners.size === 0) this.#contents.delete(content.key);
    const owned = this.#ofOwner.get(owner);
    owned?.delete(content);
    if (owned?.size === 0) this.#ofOwner.delete(owner);
  }

  /** Returns the key of a content. Throws `not_found` if the owner does not exist. */
  #keyFor(owner: ContentOwner, hash: string): string {
    if ("runId" in owner) return JSON.stringify([this.#tables.run(owner.runId).record.tenantId, hash]);
    const session = this.#ownerOf(owner.sessionId);
    if (session === undefined) throw new Fault("not_found", `${textOf(owner)} does not exist in this store`);
    return JSON.stringify([session.tenantId, hash]);
  }
}

function textOf(owner: ContentOwner): string {
  return "runId" in owner ? `run ${owner.runId}` : `session ${owner.sessionId}`;
}

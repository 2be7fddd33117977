import {
  Fault,
  is,
  optionTable,
  type Clock,
  type Hash,
  type HiddenItem,
  type HideOptions,
  type InboxOwner,
  type JsonValue,
  type OptionKinds,
  type RecordKey,
  type Records,
  type RuntimeInbox,
  type StoredRecord,
} from "../../kernel/index.ts";
import { idDigest } from "../process/id-digest.ts";

export interface StoredInboxOptions {
  readonly records: Records;
  readonly clock: Clock;
  readonly hash: Hash;
  /** Throws if the runtime is closed. */
  readonly check: () => void;
  /** Returns the owner with the tenant and the user of the caller. Throws if the options name others. */
  readonly own: (owner: string, options: InboxOwner) => InboxOwner;
  /**
   * Maximum number of items that one person may hide. If there are more, the one that was hidden first is shown
   * again. Default: 1_000.
   */
  readonly most?: number;
}

const namespace = "inbox";
/** Time after which a hidden item is removed from the store. By then, the question has usually ended or changed. */
const forgottenAfterMs = 90 * 24 * 3_600_000;

const ownerTable = optionTable({ tenantId: is.any, userId: is.any } satisfies OptionKinds<InboxOwner>);
const hideTable = optionTable({
  id: is.text({ required: true, empty: false }),
  change: is.text({ required: true }),
  until: is.any,
} satisfies OptionKinds<HideOptions>);

/**
 * Stores which items people have hidden from their inboxes. There is one record per item, so that two pages of a
 * person do not overwrite each other.
 */
export class StoredInbox implements RuntimeInbox {
  readonly #options: StoredInboxOptions;

  constructor(options: StoredInboxOptions) {
    this.#options = options;
  }

  async hidden(owner: InboxOwner = {}): Promise<readonly HiddenItem[]> {
    const records = await this.#all("inbox.hidden()", owner);
    const now = this.#options.clock.now();
    return records.map(itemOf).filter((item) => !isOver(item, now));
  }

  async hide(items: HideOptions | readonly HideOptions[], owner: InboxOwner = {}): Promise<void> {
    const at = this.#options.clock.now();
    const hidden = [items].flat().map((item) => hiddenAt(item, at));
    const known = await this.#all("inbox.hide()", owner);
    await this.#drop(known, hidden.length, at);
    for (const item of hidden)
      await this.#write(this.#keyOf("inbox.hide()", owner, item.id), item as unknown as JsonValue);
  }

  async restore(id: string, owner: InboxOwner = {}): Promise<boolean> {
    const key = this.#keyOf("inbox.restore()", owner, id);
    return this.#remove(key);
  }

  async #write(key: RecordKey, value: JsonValue): Promise<void> {
    const { records } = this.#options;
    for (;;) {
      const found = await records.get(key);
      const written = await records.put({ ...key, value }, found?.version ?? "absent");
      if (written.kind === "stored") return;
    }
  }

  async #remove({ tenantId, key: name }: RecordKey): Promise<boolean> {
    const { records } = this.#options;
    const key = { namespace, tenantId, key: name };
    for (;;) {
      const found = await records.get(key);
      if (found === undefined) return false;
      if ((await records.delete(key, found.version)).kind === "deleted") return true;
    }
  }

  /** Makes room for more items. */
  async #drop(found: readonly StoredRecord[], more: number, now: number): Promise<void> {
    const byAge = found.toSorted((one, other) => itemOf(one).at - itemOf(other).at);
    const { most = 1_000 } = this.#options;
    const surplus = Math.max(0, found.length + more - most);
    for (const [index, record] of byAge.entries())
      if (index < surplus || isOver(itemOf(record), now)) await this.#remove(record);
  }

  async #all(caller: string, owner: InboxOwner): Promise<readonly StoredRecord[]> {
    const { records } = this.#options;
    const { tenantId, prefix } = this.#placeOf(caller, owner);
    const found: StoredRecord[] = [];
    for (let after: string | undefined; ;) {
      const page = await records.list({ namespace, tenantId, prefix, ...(after !== undefined && { after }) });
      found.push(...page.records);
      if (page.next === null) return found;
      after = page.next;
    }
  }

  #keyOf(caller: string, owner: InboxOwner, id: string): RecordKey {
    const { tenantId, prefix } = this.#placeOf(caller, owner);
    return { namespace, tenantId, key: `${prefix}${idDigest(id, this.#options.hash)}` };
  }

  #placeOf(caller: string, owner: InboxOwner): { readonly tenantId: string | null; readonly prefix: string } {
    const { check, own, hash } = this.#options;
    check();
    const { tenantId = null, userId = null } = own(caller, ownerTable.read(caller, owner));
    return { tenantId, prefix: `${userId === null ? "" : idDigest(userId, hash)}/` };
  }
}

function hiddenAt(options: HideOptions, at: number): HiddenItem {
  const { id, change, until = null } = hideTable.read("inbox.hide()", options);
  if (until !== null && !(Number.isSafeInteger(until) && until > at))
    throw new Fault(
      "invalid_argument",
      `invalid until ${String(until)} of inbox.hide(): expected a later time in epoch milliseconds, or null`,
    );
  return { id, change, until, at };
}

function itemOf({ value }: StoredRecord): HiddenItem {
  return value as unknown as HiddenItem;
}

function isOver({ until, at }: HiddenItem, now: number): boolean {
  return (until !== null && until <= now) || at + forgottenAfterMs <= now;
}

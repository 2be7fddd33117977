import {
  inboxSettings,
  type Hash,
  type InboxSettings,
  type Store,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { sha256 } from "../../process/sha256.ts";
import { MemoryContents } from "./contents.ts";
import { MemoryEventLog } from "./event-log.ts";
import { MemoryInbox } from "./inbox.ts";
import { MemoryJournal } from "./journal.ts";
import { MemoryLeases } from "./leases.ts";
import { MemoryMailbox } from "./mailbox.ts";
import { MemoryRecords } from "./records.ts";
import { MemoryScores } from "./scores.ts";
import { MemorySessions } from "./sessions.ts";
import { Tables } from "./tables.ts";
import { MemoryTopics } from "./topics.ts";
import { MemoryUsageTotals } from "./usage-totals.ts";

export interface MemoryStoreOptions {
  /** Hash function for content and the event chain. Default: SHA-256. */
  readonly hash?: Hash;
  /** How often, and after which delay, messages that are handed back are delivered again. */
  readonly inbox?: Partial<InboxSettings>;
}

const knownOptions = optionTable({
  hash: is.callback(),
  inbox: is.any,
} satisfies OptionKinds<MemoryStoreOptions>);

/**
 * F1: creates a store in the memory of this process. It keeps values as they are and computes neither JSON nor
 * digests.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  const { hash = sha256, inbox: mail } = knownOptions.read("memoryStore()", options);
  const tables = new Tables();
  const contents = new MemoryContents(tables, hash, (sessionId) => sessions.ownerOf(sessionId));
  const sessions = new MemorySessions(tables, contents);
  const mailbox = new MemoryMailbox(tables);
  const inbox = new MemoryInbox(tables, inboxSettings(mail));
  const topics = new MemoryTopics();
  const usage = new MemoryUsageTotals(tables);
  const records = new MemoryRecords(tables);
  return {
    journal: new MemoryJournal(tables, hash, { sessions, mailbox, inbox, topics, contents, usage, records }),
    events: new MemoryEventLog(tables, hash),
    mailbox,
    inbox,
    sessions,
    contents,
    leases: new MemoryLeases(tables),
    topics,
    records,
    usage,
    scores: new MemoryScores(tables),
    onChange(listener) {
      tables.listeners.add(listener);
      return () => tables.listeners.delete(listener);
    },
    close: async () => {},
  };
}

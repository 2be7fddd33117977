import {
  inboxSettings,
  type Event,
  type Hash,
  type InboxSettings,
  type Journal,
  type Leases,
  type Store,
} from "../../../kernel/index.ts";
import { Chain } from "../codec/chain.ts";
import { LargeValues } from "../codec/large-values.ts";
import { ContentRows } from "./content-rows.ts";
import { SqlContents } from "./contents.ts";
import type { Dialect } from "./dialect.ts";
import { EntryCheck } from "./entry-check.ts";
import { EntryRows } from "./entry-rows.ts";
import { SqlEventLog, type SqlEventLogOptions } from "./event-log.ts";
import { SqlInbox } from "./inbox.ts";
import type { JournalParts } from "./journal.ts";
import { SqlMailbox } from "./mailbox.ts";
import { OpenApprovals, type ApprovalRow } from "./open-approvals.ts";
import { SqlRecords } from "./records.ts";
import { RunList } from "./run-list.ts";
import { SessionChanges } from "./session-changes.ts";
import { SessionCopy } from "./session-copy.ts";
import { SqlScores } from "./scores.ts";
import { SqlSessions } from "./sessions.ts";
import type { OwnedRun, SqlTables } from "./tables.ts";
import { SqlTopics } from "./topics.ts";
import { SqlUsageTotals } from "./usage-totals.ts";
import type { Work } from "./work.ts";

/** The tools that encode and read the contents of a store. */
export interface StoreTools {
  readonly hash: Hash;
  readonly chain: Chain;
  readonly large: LargeValues;
  readonly contents: ContentRows;
  readonly entries: EntryRows;
}

export function storeTools(dialect: Dialect, hash: Hash, auditKey: string | undefined): StoreTools {
  const chain = new Chain(hash, auditKey);
  const contents = new ContentRows(dialect);
  const entries = new EntryRows(dialect, contents);
  return { hash, chain, large: new LargeValues(chain.contentHash), contents, entries };
}

/** The parts of a store that its dialect builds. */
export interface SqlStoreOptions<Owned extends OwnedRun>
  extends
    Pick<JournalParts<Owned>, "collector" | "eraser">,
    Omit<SqlEventLogOptions, "owned" | "deltas" | "feeds" | "entries"> {
  readonly tables: SqlTables<Owned>;
  readonly tools: StoreTools;
  readonly inbox: Partial<InboxSettings> | undefined;
  readonly deltas: JournalParts<Owned>["deltas"] & SqlEventLogOptions["deltas"];
  readonly feeds: JournalParts<Owned>["feeds"] & SqlEventLogOptions["feeds"];
  readonly leases: Leases;
  /** Returns the events of the commit that asks a question. */
  readonly eventsOf: (row: ApprovalRow) => Work<readonly Event[]>;
  readonly journal: (parts: JournalParts<Owned>) => Journal;
  readonly close: () => Promise<void>;
}

/** Creates a store from the parts of its dialect. */
export function sqlStore<Owned extends OwnedRun>(options: SqlStoreOptions<Owned>): Store {
  const { tables, tools, collector, eraser, deltas, feeds, leases, watch, close } = options;
  const { hash, chain, large, entries } = tools;
  const changes = new SessionChanges({ ...tools, dialect: tables.dialect });
  const copies = new SessionCopy({ ...tools, dialect: tables.dialect, changes });
  const list = new RunList(tables);
  const mailbox = new SqlMailbox(tables);
  const inbox = new SqlInbox(tables, inboxSettings(options.inbox));
  const usage = new SqlUsageTotals(tables);
  const approvals = new OpenApprovals(tables, options.eventsOf);
  // Completes what a dead process left partly collected or erased. If this fails, the next deletion reports the error.
  collector.collect().catch(() => undefined);
  eraser.erase().catch(() => undefined);
  let closing: Promise<void> | undefined;
  return {
    journal: options.journal({
      tables,
      chain,
      draftTools: { hash, large },
      collector,
      eraser,
      list,
      sessions: changes,
      mailbox,
      inbox,
      deltas,
      feeds,
      usage,
      approvals,
    }),
    events: new SqlEventLog({
      ...options,
      owned: tables.owned,
      entries: new EntryCheck({ ...tools, tables }),
    }),
    mailbox,
    inbox,
    sessions: new SqlSessions({ tables, entries, changes, copies, list, collector }),
    contents: new SqlContents({ tables, rows: tools.contents, chain, collector }),
    leases,
    topics: new SqlTopics(tables),
    records: new SqlRecords(tables),
    usage,
    scores: new SqlScores(tables),
    onChange(listener) {
      const unwatch = watch.hold();
      tables.listeners.add(listener);
      return () => {
        tables.listeners.delete(listener);
        unwatch();
      };
    },
    close: () => (closing ??= close()),
  };
}

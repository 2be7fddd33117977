import {
  assertOutcome,
  deepFreeze,
  Fault,
  type Commit,
  type Event,
  type Journal,
  type Lease,
  type RunId,
  type RunRecord,
  type TaskId,
} from "../../../kernel/index.ts";
import type { MemoryBlobs } from "./blobs.ts";
import type { MemoryInbox } from "./inbox.ts";
import type { MemoryMailbox } from "./mailbox.ts";
import type { MemorySessions } from "./sessions.ts";
import type { RunRow, Tables } from "./tables.ts";
import type { MemoryTopics } from "./topics.ts";

/** What a commit changes besides its run. */
interface Neighbours {
  readonly sessions: MemorySessions;
  readonly mailbox: MemoryMailbox;
  readonly inbox: MemoryInbox;
  readonly topics: MemoryTopics;
  readonly blobs: MemoryBlobs;
}

const nothing: readonly Event[] = [];

export class MemoryJournal implements Journal {
  readonly #tables: Tables;
  readonly #neighbours: Neighbours;

  constructor(tables: Tables, neighbours: Neighbours) {
    this.#tables = tables;
    this.#neighbours = neighbours;
  }

  async create(record: RunRecord, first: Commit): Promise<boolean> {
    if (this.#tables.runs.has(record.runId)) return false;
    const row: RunRow = {
      record,
      commits: [],
      events: [],
      mail: [],
      mailIds: new Set(),
      deltas: [],
      deltaBatch: 0,
      epoch: 0,
      owner: null,
      rest: { kind: "ready" },
      readyAt: this.#tables.tick(),
      watchers: new Set(),
    };
    // Its input is the caller's own.
    deepFreeze(first);
    this.#write(row, first);
    this.#tables.runs.set(record.runId, row);
    this.#tables.live.add(row);
    this.#tables.announce(record.runId);
    return true;
  }

  async find(runId: RunId): Promise<RunRecord | undefined> {
    return this.#tables.runs.get(runId)?.record;
  }

  async append(lease: Lease, commit: Commit): Promise<Commit> {
    const row = this.#tables.owned(lease);
    const standing = row.commits[commit.number];
    if (standing !== undefined) return standing;
    this.#write(row, commit);
    for (const tell of row.watchers) tell(commit.events ?? nothing);
    return commit;
  }

  async *read(runId: RunId, from = 0): AsyncIterable<Commit> {
    const { commits } = this.#tables.run(runId);
    const end = commits.length;
    for (let number = from; number < end; number++) {
      const commit = commits[number];
      if (commit !== undefined) yield commit;
    }
  }

  async delete(runId: RunId): Promise<void> {
    await this.#neighbours.blobs.delete(runId);
    const row = this.#tables.runs.get(runId);
    if (row !== undefined) this.#tables.live.delete(row);
    this.#tables.runs.delete(runId);
    for (const tell of row?.watchers ?? []) tell();
  }

  /** Refuses before it changes anything. */
  #write(row: RunRow, commit: Commit): void {
    const { number, steps, events, sessions, mail, inbox, topics, mailThrough } = commit;
    if (number !== row.commits.length) {
      throw new Fault("invalid_argument", `commit ${number} leaves a gap: the next is ${row.commits.length}`);
    }
    if (steps !== undefined) for (const step of steps) assertOutcome(step);
    let next = row.events.length;
    for (const { seq } of events ?? nothing) {
      if (seq !== next) throw new Fault("invalid_argument", `event ${seq} leaves a gap: the next is ${next}`);
      next++;
    }
    if (sessions !== undefined) this.#neighbours.sessions.applyNow(sessions);
    // J1: whoever is handed a record cannot change it.
    if (steps !== undefined) for (const { outcome } of steps) deepFreeze(outcome);
    row.commits.push(commit);
    if (events !== undefined) for (const event of events) row.events.push(event);
    for (const each of mail ?? []) this.#neighbours.mailbox.putNow(each);
    if (inbox !== undefined) this.#neighbours.inbox.applyNow(inbox);
    if (topics !== undefined) this.#neighbours.topics.applyNow(topics);
    if (mailThrough !== undefined) row.mail = row.mail.filter(({ place }) => place > mailThrough);
    if (row.deltas.length > 0) this.#dropShown(row, events ?? nothing);
  }

  /** E2: what was shown of a message or a tool goes with the commit that records the whole. */
  #dropShown(row: RunRow, events: readonly Event[]): void {
    const messages = new Set<TaskId>();
    const calls = new Set<string>();
    for (const event of events) {
      if (event.type === "message_end") messages.add(event.taskId);
      if (event.type === "tool_execution_end") calls.add(`${event.taskId} ${event.data.callId}`);
    }
    if (messages.size + calls.size === 0) return;
    row.deltas = row.deltas.filter((delta) =>
      delta.type === "tool_execution_update"
        ? !calls.has(`${delta.taskId} ${delta.callId}`)
        : !messages.has(delta.taskId),
    );
    row.deltaBatch++;
  }
}

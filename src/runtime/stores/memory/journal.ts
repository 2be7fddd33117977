import {
  assertJson,
  Fault,
  type Commit,
  type Journal,
  type Lease,
  type RunId,
  type RunRecord,
} from "../../../kernel/index.ts";
import type { MemoryBlobs } from "./blobs.ts";
import type { MemorySessions } from "./sessions.ts";
import type { RunRow, Tables } from "./tables.ts";

export class MemoryJournal implements Journal {
  readonly #tables: Tables;
  readonly #sessions: MemorySessions;
  readonly #blobs: MemoryBlobs;

  constructor(tables: Tables, sessions: MemorySessions, blobs: MemoryBlobs) {
    this.#tables = tables;
    this.#sessions = sessions;
    this.#blobs = blobs;
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
      watchers: new Set(),
    };
    this.#write(row, first);
    this.#tables.runs.set(record.runId, row);
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
    for (const tell of row.watchers) tell();
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
    await this.#blobs.delete(runId);
    const row = this.#tables.runs.get(runId);
    this.#tables.runs.delete(runId);
    for (const tell of row?.watchers ?? []) tell();
  }

  /** Refuses before it changes anything. */
  #write(row: RunRow, commit: Commit): void {
    const { number, steps = [], events = [], sessions = [], mailThrough } = commit;
    if (number !== row.commits.length) {
      throw new Fault("invalid_argument", `commit ${number} leaves a gap: the next is ${row.commits.length}`);
    }
    for (const { address, outcome } of steps) {
      if (outcome.kind === "ok") assertJson(outcome.value, `the value of step ${address}`);
    }
    for (const [index, { seq }] of events.entries()) {
      const next = row.events.length + index;
      if (seq !== next) throw new Fault("invalid_argument", `event ${seq} leaves a gap: the next is ${next}`);
    }
    this.#sessions.applyNow(sessions);
    row.commits.push(commit);
    row.events.push(...events);
    if (mailThrough !== undefined) row.mail = row.mail.filter(({ place }) => place > mailThrough);
    if (events.some(({ type }) => type === "message_end" || type === "tool_execution_end")) {
      row.deltas = [];
      row.deltaBatch++;
    }
  }
}

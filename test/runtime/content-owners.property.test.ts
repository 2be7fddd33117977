import assert from "node:assert/strict";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatRunId,
  parseSessionId,
  rootTaskId,
  toolMessage,
  type ContentOwner,
  type JsonValue,
  type Lease,
  type RunRecord,
  type SessionEntry,
  type SessionId,
  type Store,
} from "../../src/kernel/index.ts";
import { memoryStore } from "../../src/runtime/stores/memory/store.ts";
import { sha256 } from "../../src/runtime/process/sha256.ts";
import { agentId, all, runEnd, runRecord, stepRecord } from "../../src/testing/contracts/store-fixtures.ts";
import { isFull, propertyRuns } from "../effort.ts";
import { connect, count, newPath, openStore, until } from "./stores/sqlite/store-files.ts";

const texts = ["one ", "two ", "größer "].map((word) => word.repeat(1_500));
const list = Array.from({ length: 2_000 }, (_, index) => index);
/** The last value is too small to be a content. */
const values: readonly JsonValue[] = [...texts, list, "small"];
const tenants = ["acme", null] as const;

function hashOf(value: JsonValue): string {
  return sha256(typeof value === "string" ? value : JSON.stringify(value));
}

interface Run {
  readonly record: RunRecord;
  readonly lease: Lease;
  readonly records: JsonValue[];
  readonly puts: Set<JsonValue>;
  commits: number;
  events: number;
  isErased: boolean;
  isEnded: boolean;
}

interface Entry {
  readonly id: string;
  readonly run: Run;
  readonly value: JsonValue;
  readonly isVisible: boolean;
}

interface Session {
  readonly sessionId: SessionId;
  readonly tenantId: string | null;
  readonly entries: Entry[];
  readonly puts: Set<JsonValue>;
}

/** A simple model of what a store contains: every owner has its own copy of everything. */
class Oracle {
  readonly runs: Run[] = [];
  readonly sessions = new Map<SessionId, Session>();

  /** The tenant and the hash of every value that has an owner. */
  contents(): readonly string[] {
    const found = new Set<string>();
    const add = (tenantId: string | null, held: Iterable<JsonValue>): void => {
      for (const value of held) found.add(`${tenantId === null ? "-" : `=${tenantId}`} ${hashOf(value)}`);
    };
    // A small value is a content only if it was put.
    const large = (held: readonly JsonValue[]): readonly JsonValue[] =>
      held.filter((value) => value !== null && value !== "small");
    for (const { record, records, puts } of this.runs) {
      add(record.tenantId, large(records));
      add(record.tenantId, puts);
    }
    for (const { tenantId, entries, puts } of this.sessions.values()) {
      add(tenantId, large(entries.map(({ value }) => value)));
      add(tenantId, puts);
    }
    return [...found].toSorted();
  }

  /** Removes entries, and the session with its last entry. */
  remove(sessionId: SessionId, isGoing: (entry: Entry) => boolean): void {
    const session = this.sessions.get(sessionId);
    if (session === undefined) return;
    session.entries.splice(0, session.entries.length, ...session.entries.filter((each) => !isGoing(each)));
    if (session.entries.length === 0) this.sessions.delete(sessionId);
  }
}

interface Step {
  readonly op:
    | "create"
    | "append"
    | "put"
    | "share"
    | "release"
    | "fork"
    | "erase"
    | "forget"
    | "end"
    | "delete run"
    | "delete session";
  readonly who: number;
  readonly other: number;
  readonly value: number;
  readonly isVisible: boolean;
}

const steps = fc.array(
  fc.record<Step>({
    op: fc.constantFrom(
      ...(["create", "create", "create", "append", "append", "append", "put", "share", "release"] as const),
      ...(["fork", "fork", "erase", "forget", "end", "delete run", "delete session"] as const),
    ),
    who: fc.nat(50),
    other: fc.nat(50),
    value: fc.nat(values.length - 1),
    isVisible: fc.boolean(),
  }),
  { minLength: 20, maxLength: 60, size: "max" },
);

/** Makes the same change in a store and in its model. */
class Bench {
  readonly oracle = new Oracle();
  readonly #store: Store;
  owners = 0;
  #made = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  async do(step: Step): Promise<void> {
    const value = values[step.value] ?? null;
    const { runs } = this.oracle;
    if (step.op === "create") return this.#create(tenants[step.who % 2] ?? null, step.other % 2, []);
    const run = runs[step.who % Math.max(1, runs.length)];
    if (run === undefined) return undefined;
    switch (step.op) {
      case "append":
        return this.#append(run, value, step.isVisible);
      case "fork":
        return this.#create(run.record.tenantId, 2 + this.#made, run.records);
      case "erase":
        return this.#erase(run);
      case "forget":
        return this.#forget(run);
      case "end":
        return this.#end(run);
      case "delete run":
        return this.#deleteRun(run);
      case "delete session":
        return this.#deleteSession(run.record.sessionId);
      default:
        return this.#own(step, run, value);
    }
  }

  async #create(tenantId: string | null, session: number, copied: readonly JsonValue[]): Promise<void> {
    const name = `${++this.#made}`;
    const sessionId = parseSessionId(`ses_${tenantId ?? "none"}-${session}`);
    const record = { ...runRecord(name), runId: formatRunId(name), sessionId, tenantId };
    const first = { number: 0, at: 1, steps: copied.map((value, index) => stepRecord(index, value)) };
    await this.#store.journal.create(record, first);
    const lease = await this.#store.leases.seize(record.runId, "w1");
    if (lease === undefined) throw new Error(`${name} could not be seized`);
    const state = { commits: 1, events: 0, isErased: false, isEnded: false };
    this.oracle.runs.push({ record, lease, records: [...copied], puts: new Set(), ...state });
    this.owners++;
  }

  async #append(run: Run, value: JsonValue, isVisible: boolean): Promise<void> {
    if (run.isErased || run.isEnded) return;
    const { sessionId, tenantId } = run.record;
    const id = `entry ${++this.#made}`;
    const entry = entryOf(id, run, value);
    const visibility = isVisible ? "visible" : "hidden";
    await this.#store.journal.append(run.lease, {
      number: run.commits,
      at: 2,
      steps: [stepRecord(run.commits * 1_000, value)],
      sessions: [{ type: "append", sessionId, agentId, entry, visibility }],
    });
    run.commits++;
    run.records.push(value);
    const { sessions } = this.oracle;
    if (!sessions.has(sessionId)) {
      sessions.set(sessionId, { sessionId, tenantId, entries: [], puts: new Set() });
      this.owners++;
    }
    sessions.get(sessionId)?.entries.push({ id, run, value, isVisible });
  }

  /** Puts, shares or releases a content of a run or of its session. */
  async #own({ op, other, isVisible }: Step, run: Run, value: JsonValue): Promise<void> {
    const { contents } = this.#store;
    const held = this.#held(run, isVisible);
    if (held === undefined) return;
    const bytes = new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
    const hash = sha256(bytes);
    if (op === "put") {
      assert.equal(await contents.put(held.owner, bytes), hash);
      held.puts.add(value);
    } else if (op === "release") {
      await contents.release(held.owner, hash);
      held.puts.delete(value);
    } else {
      const to = this.#held(this.oracle.runs[other % this.oracle.runs.length] as Run, !isVisible);
      if (to === undefined) return;
      const sharing = contents.share(hash, { from: held.owner, to: to.owner });
      if (held.puts.has(value) && held.tenantId === to.tenantId) {
        await sharing;
        to.puts.add(value);
      } else await assert.rejects(sharing, { code: "not_found" });
    }
  }

  #held(
    run: Run,
    isSession: boolean,
  ): { owner: ContentOwner; puts: Set<JsonValue>; tenantId: string | null } | undefined {
    const { runId, sessionId, tenantId } = run.record;
    if (!isSession) return { owner: { runId }, puts: run.puts, tenantId };
    const session = this.oracle.sessions.get(sessionId);
    return session && { owner: { sessionId }, puts: session.puts, tenantId: session.tenantId };
  }

  async #erase(run: Run): Promise<void> {
    if (run.isErased || run.isEnded) return;
    await this.#store.journal.append(run.lease, {
      number: run.commits++,
      at: 3,
      erases: [{ taskId: rootTaskId, agentId }],
    });
    run.isErased = true;
    run.records.fill(null);
  }

  /** Removes the entries of a run from its session. */
  async #forget(run: Run): Promise<void> {
    const { runId, sessionId } = run.record;
    await this.#store.sessions.apply([{ type: "remove", sessionId, runId }]);
    this.oracle.remove(sessionId, (entry) => entry.run === run);
  }

  async #end(run: Run): Promise<void> {
    if (run.isEnded) return;
    const { lease, commits: number, events } = run;
    await this.#store.journal.append(lease, { number, at: 4, events: [runEnd(lease.runId, events)] });
    await this.#store.leases.release(lease, { kind: "ended" });
    run.isEnded = true;
  }

  async #deleteRun(run: Run): Promise<void> {
    const { runId, sessionId } = run.record;
    await this.#store.journal.delete(runId);
    this.oracle.runs.splice(this.oracle.runs.indexOf(run), 1);
    this.oracle.remove(sessionId, (entry) => entry.run === run && !entry.isVisible);
  }

  async #deleteSession(sessionId: SessionId): Promise<void> {
    const isBusy = this.oracle.runs.some(({ record, isEnded }) => record.sessionId === sessionId && !isEnded);
    assert.equal((await this.#store.sessions.delete(sessionId)) !== undefined, isBusy);
    if (!isBusy) this.oracle.sessions.delete(sessionId);
  }

  /** Compares everything that can be read with the model. */
  async check(): Promise<void> {
    const { journal, sessions, events, contents } = this.#store;
    for (const { record, records, puts } of this.oracle.runs) {
      const { runId } = record;
      const commits = await all(journal.read(runId));
      const stored = commits.flatMap((commit) => commit.steps ?? []);
      assert.deepEqual(
        stored.map(({ outcome }) => outcome.kind === "ok" && outcome.value),
        records,
      );
      assert.equal((await events.verify(runId)).ok, true);
      for (const value of values) {
        const text = typeof value === "string" ? value : JSON.stringify(value);
        const bytes = await contents.get({ runId }, sha256(text));
        assert.equal(bytes && new TextDecoder().decode(bytes), puts.has(value) ? text : undefined);
      }
    }
    for (const { sessionId, entries } of this.oracle.sessions.values()) {
      const stored = await sessions.read(sessionId, { includeHidden: true });
      assert.deepEqual(
        stored.map(({ entry }) => entry),
        entries.map(({ id, run, value }) => entryOf(id, run, value)),
      );
    }
  }
}

function entryOf(id: string, { record: { runId } }: Run, value: JsonValue): SessionEntry {
  const output = typeof value === "string" ? { type: "text", text: value } : { type: "json", value };
  const part = { type: "tool_result", callId: "c", toolName: "t", output, isError: false };
  const message = toolMessage([part as Parameters<typeof toolMessage>[0][number]]);
  return { type: "message", id, parentId: null, at: 1, runId, taskId: rootTaskId, message };
}

async function bench(store: Store, sequence: readonly Step[]): Promise<Bench> {
  const made = new Bench(store);
  await store.leases.enlist("w1");
  for (const step of sequence) await made.do(step);
  await made.check();
  return made;
}

test("V2, V3, V4, V5: after random runs, sessions, forks, deletions and erasures, exactly the contents with owners are stored", async () => {
  let owners = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const path = await newPath();
      const store = await openStore(path);
      const { oracle, owners: made } = await bench(store, sequence);
      owners += made;
      await until(() => count(path, "runs WHERE erasing = 1") === 0, "all erasures are done");
      await store.contents.release({ runId: formatRunId("none") }, "none");
      const rows = connect(path).prepare("SELECT tenant || ' ' || hash AS content FROM contents").all();
      expect(rows.map(({ content }) => String(content)).toSorted()).toEqual(oracle.contents());
      expect(count(path, "content_pieces")).toBe(rows.length);
      expect(count(path, "content_owners WHERE content NOT IN (SELECT id FROM contents)")).toBe(0);
      await store.close();
    }),
    { numRuns: propertyRuns(80) },
  );
  expect(owners).toBeGreaterThanOrEqual(isFull ? 1_000 : 1);
});

test("V1, V2, V3, V4, V5: the memory store reads back what a simple model of it holds, for the same random owners", async () => {
  const checked = fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      await bench(memoryStore({ hash: sha256 }), sequence);
    }),
    { numRuns: propertyRuns(200) },
  );
  await expect(checked).resolves.toBeUndefined();
});

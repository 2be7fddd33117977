import {
  assertOutcome,
  Fault,
  reviveFault,
  type Clock,
  type Commit,
  type Delta,
  type Event,
  type EventType,
  type Failure,
  type Hash,
  type InboxSettings,
  type Lease,
  type LostOwner,
  type RunId,
  type RunRecord,
  type Store,
  type StoreChange,
  type Submission,
} from "../../../kernel/index.ts";
import { decodeCommit, encodeCommit } from "../codec/commit-codec.ts";
import type { StoredCommit } from "../codec/stored-commit.ts";
import { memoryStore } from "../memory/store.ts";
import type { Beat } from "../worker-beats.ts";

/** A request to the database: a method of a contract of the store, with its arguments as JSON. */
export interface DatabaseRequest {
  /** Id of the request. A request that is sent again has the same id and is performed only once. */
  readonly id: string;
  /** Names the connected process. */
  readonly client: string;
  readonly method: string;
  /** JSON of the arguments. */
  readonly body: string;
}

/** The answer to a request as JSON, with the changes that the request made. */
export interface DatabaseAnswer {
  readonly body: string;
  readonly changes: readonly StoreChange[];
}

export interface SimulatedDatabaseOptions {
  /** The clock by which leases expire. */
  readonly clock: Pick<Clock, "now">;
  readonly hash: Hash;
  readonly inbox?: Partial<InboxSettings>;
  /** Receives each change that a request of `client` made, for all connected processes. */
  readonly onChange?: (client: string, change: StoreChange) => void;
  /** Called when an open tail of this client has something new. */
  readonly onTail?: (client: string, tail: string) => void;
}

interface Registered {
  readonly incarnation: number;
  readonly leaseMs: number;
  beatAt: number;
}

interface LostRegistration {
  readonly incarnation: number;
  readonly lostAt: number;
  readonly knownAt: number;
  isWithdrawn: boolean;
  hasEnded: boolean;
}

interface OpenTail {
  readonly client: string;
  readonly items: (Event | Delta)[];
  readonly stop: AbortController;
  isOver: boolean;
  failure: Failure | undefined;
}

/** L7: number of lease durations without a sign of life after which the process of a worker counts as ended. */
const leasesUntilKnown = 10;

/** Number of answers that the database keeps, for requests that are sent again. */
const mostAnswers = 4_096;

type Method = (...given: never[]) => unknown;

/**
 * The database behind simulated stores. It consists of the tables of the memory store, with registrations that
 * expire by its own clock. It performs one request at a time, and each request takes effect at once or not at all.
 * Everything that enters or leaves is JSON, and commits are stored as `stores/codec` reads them back.
 */
export class SimulatedDatabase {
  /** The tables. A test that knows the expected result reads them directly. */
  readonly tables: Store;
  readonly #options: SimulatedDatabaseOptions;
  readonly #workers = new Map<string, Registered>();
  /** The registrations that were lost, by worker and incarnation. */
  readonly #lost = new Map<string, LostRegistration>();
  /** Workers that own runs although their registration was deleted. */
  readonly #orphaned = new Set<string>();
  readonly #tails = new Map<string, OpenTail>();
  readonly #answers = new Map<string, DatabaseAnswer>();
  readonly #special: Readonly<Record<string, Method>>;
  #changes: StoreChange[] = [];
  #tailCount = 0;

  constructor(options: SimulatedDatabaseOptions) {
    const { hash, inbox } = options;
    this.#options = options;
    this.tables = memoryStore({ hash, ...(inbox && { inbox }) });
    this.tables.onChange((change) => this.#changes.push(change));
    this.#special = this.#specialMethods();
  }

  /** Performs a request, unless it was performed before. Never rejects. */
  async perform(request: DatabaseRequest): Promise<DatabaseAnswer> {
    const known = this.#answers.get(request.id);
    if (known !== undefined) return known;
    this.#changes = [];
    const body = await this.#answerOf(request);
    // The tables tell of changes in a microtask of their own.
    await Promise.resolve();
    const changes = this.#changes;
    const answer = { body, changes };
    this.#answers.set(request.id, answer);
    if (this.#answers.size > mostAnswers) {
      const [oldest] = this.#answers.keys();
      if (oldest !== undefined) this.#answers.delete(oldest);
    }
    for (const change of changes) this.#options.onChange?.(request.client, change);
    return answer;
  }

  /** Whether a request was performed. */
  hasPerformed(id: string): boolean {
    return this.#answers.has(id);
  }

  /** Ends all tails, as a restart of the database does. Committed data stays. */
  restart(): void {
    for (const tail of this.#tails.values()) tail.stop.abort();
    this.#tails.clear();
  }

  /** L12: deletes the registration of a worker, as an operator might. */
  forgetWorker(workerId: string): void {
    this.#workers.delete(workerId);
    this.#orphaned.add(workerId);
  }

  async #answerOf({ client, method, body }: DatabaseRequest): Promise<string> {
    try {
      const given = argumentsOf(body);
      const special = this.#special[method];
      const value =
        special === undefined
          ? await this.#plain(method, given)
          : await special(...([client, ...given] as never[]));
      return JSON.stringify({ value });
    } catch (error) {
      return JSON.stringify({ failure: Fault.from(error).toJSON() });
    }
  }

  #plain(method: string, given: never[]): unknown {
    const [contract, name] = method.split(".") as [keyof Store, string];
    const owner = this.tables[contract] as unknown as Readonly<Record<string, Method | undefined>>;
    const found = owner[name];
    if (found === undefined) throw new Fault("unsupported", `the simulated database has no method ${method}`);
    return found.apply(owner, given);
  }

  #specialMethods(): Readonly<Record<string, Method>> {
    const { journal, events, contents, leases } = this.tables;
    return {
      "journal.create": (_: string, run: RunRecord, first: Commit, ...rest: never[]) =>
        journal.create(run, this.#stored(first, run), ...rest),
      "journal.append": async (_: string, lease: Lease, commit: Commit, submissions?: Submission[]) => {
        const record = await journal.find(lease.runId);
        const own = record === undefined ? commit : this.#stored(commit, record);
        const others = submissions?.map((each) => ({ ...each, first: this.#stored(each.first, each.run) }));
        const stored = await journal.append(lease, own, others);
        return stored === own ? undefined : stored;
      },
      "journal.commits": async (_: string, runId: RunId) => {
        const commits: Commit[] = [];
        const record = await journal.replay(runId, (commit) => commits.push(commit));
        return { record, commits };
      },
      "journal.read": (_: string, runId: RunId, from?: number) => all(journal.read(runId, from)),
      "journal.collect": (_: string, options: { endedBefore: number }, kept: readonly RunId[]) =>
        journal.collect({ ...options, except: () => kept }),
      "events.read": (_: string, runId: RunId, from?: number) => all(events.read(runId, from)),
      "events.openTail": (client: string, runId: RunId, options: TailRequest) =>
        this.#openTail(client, runId, options),
      "events.takeTail": (_: string, id: string) => this.#takeTail(id),
      "events.endTail": (_: string, id: string) => {
        this.#tails.get(id)?.stop.abort();
        this.#tails.delete(id);
      },
      "contents.put": (_: string, owner: never, bytes: string) => contents.put(owner, bytesOf(bytes)),
      "contents.get": async (_: string, owner: never, hash: string) => {
        const bytes = await contents.get(owner, hash);
        return bytes === undefined ? undefined : Buffer.from(bytes).toString("base64");
      },
      "leases.claim": async (_: string, options: Parameters<typeof leases.claim>[0]) => {
        await this.#recoverDead();
        return (await leases.claim(options)).map((lease) => this.#named(lease));
      },
      "leases.seize": async (_: string, runId: RunId, workerId: string) => {
        const lease = await leases.seize(runId, workerId);
        return lease && this.#named(lease);
      },
      "leases.countReady": async (_: string, now: number, limit: number) => {
        await this.#recoverDead();
        return leases.countReady(now, limit);
      },
      "leases.findReady": async (_: string, options: Parameters<typeof leases.findReady>[0]) => {
        await this.#recoverDead();
        return leases.findReady(options);
      },
      "leases.haveEnded": (_: string, owners: readonly LostOwner[]) =>
        owners.map((owner) => this.#hasEnded(owner)),
      "leases.free": (_: string, id: string) => this.#free(id),
      "workers.now": () => this.#options.clock.now(),
      "workers.last": (_: string, workerId: string) => this.#lastBeat(workerId),
      "workers.register": (_: string, workerId: string, incarnation: number, leaseMs: number) =>
        this.#register(workerId, incarnation, leaseMs),
      "workers.registerAgain": (_: string, workerId: string, incarnation: number, leaseMs: number) =>
        this.#registerAgain(workerId, incarnation, leaseMs),
      "workers.beat": (_: string, workerId: string, incarnation: number) => {
        const known = this.#workers.get(workerId);
        if (known?.incarnation !== incarnation) return undefined;
        return (known.beatAt = this.#options.clock.now());
      },
      "workers.withdraw": (_: string, workerId: string, incarnation: number) => {
        const lost = this.#lost.get(keyOf(workerId, incarnation));
        if (lost !== undefined) Object.assign(lost, { isWithdrawn: true, hasEnded: false });
      },
      "workers.unregister": async (_: string, workerId: string, incarnation: number) => {
        if (this.#workers.get(workerId)?.incarnation !== incarnation) return;
        this.#workers.delete(workerId);
        await leases.dismiss(workerId);
      },
      "workers.haveDied": () =>
        [...this.#workers.values()].some(({ beatAt, leaseMs }) => this.#isOver(beatAt, leaseMs)),
    };
  }

  /**
   * Returns the commit as a store reads it back: through the codec, as JSON. Entries of sessions are stored
   * separately.
   */
  #stored(commit: Commit, run: RunRecord): Commit {
    for (const step of commit.steps ?? none) assertOutcome(step);
    const { sessions, ...own } = commit;
    const text = JSON.stringify(encodeCommit(own, run, this.#options.hash, none));
    const events = commit.events?.at(-1);
    const nextEvent = events === undefined ? 0 : events.seq + 1;
    const frame = { ...run, number: commit.number, at: commit.at, nextEvent };
    const stored = decodeCommit(JSON.parse(text) as StoredCommit, frame, () => none);
    return sessions === undefined ? stored : { ...stored, sessions };
  }

  #openTail(client: string, runId: RunId, { fromSeq, types }: TailRequest): string {
    const id = `tail-${++this.#tailCount}`;
    const stop = new AbortController();
    const tail: OpenTail = { client, items: [], stop, isOver: false, failure: undefined };
    this.#tails.set(id, tail);
    const items = this.tables.events.tail(runId, {
      signal: stop.signal,
      ...(fromSeq !== undefined && { fromSeq }),
      ...(types !== undefined && { types }),
    });
    void this.#fill(id, tail, items);
    return id;
  }

  async #fill(id: string, tail: OpenTail, items: AsyncIterable<Event | Delta>): Promise<void> {
    const tell = (): void => this.#options.onTail?.(tail.client, id);
    try {
      for await (const item of items) {
        tail.items.push(item);
        tell();
      }
    } catch (error) {
      tail.failure = Fault.from(error).toJSON();
    }
    tail.isOver = true;
    tell();
  }

  /** Returns `null` if the tail is unknown, because the database was restarted. */
  async #takeTail(id: string): Promise<TakenTail | null> {
    const tail = this.#tails.get(id);
    if (tail === undefined) return null;
    // What exists already arrives within some microtasks.
    for (let seen = -1, quiet = 0; !tail.isOver && quiet < 4;) {
      quiet = tail.items.length === seen ? quiet + 1 : 0;
      seen = tail.items.length;
      await Promise.resolve();
    }
    const items = tail.items.splice(0);
    if (tail.isOver) this.#tails.delete(id);
    return { items, isOver: tail.isOver, ...(tail.failure !== undefined && { failure: tail.failure }) };
  }

  #isOver(beatAt: number, leaseMs: number): boolean {
    return beatAt <= this.#options.clock.now() - leaseMs;
  }

  /** Makes the runs of workers ready whose lease has expired, and refuses later writes of those workers. */
  async #recoverDead(): Promise<void> {
    for (const [workerId, { beatAt, leaseMs, incarnation }] of this.#workers)
      if (this.#isOver(beatAt, leaseMs)) {
        this.#noteLost(workerId, incarnation, { beatAt, leaseMs, hasEnded: false });
        this.#workers.delete(workerId);
        await this.#recover(workerId);
      }
    for (const workerId of this.#orphaned) await this.#recover(workerId);
  }

  #noteLost(
    workerId: string,
    incarnation: number,
    { beatAt, leaseMs, hasEnded }: { beatAt: number; leaseMs: number; hasEnded: boolean },
  ): void {
    const knownAt = beatAt + leasesUntilKnown * leaseMs;
    const lost = { incarnation, lostAt: this.#options.clock.now(), knownAt, isWithdrawn: false, hasEnded };
    this.#lost.set(keyOf(workerId, incarnation), lost);
  }

  /** Ends all leases of a worker, so that the worker owns no run when it connects again. */
  async #recover(workerId: string): Promise<void> {
    const { leases } = this.tables;
    this.#orphaned.delete(workerId);
    await leases.dismiss(workerId);
    await leases.enlist(workerId);
    await leases.dismiss(workerId);
  }

  #lastBeat(workerId: string): Beat | undefined {
    const known = this.#workers.get(workerId);
    return known && { incarnation: known.incarnation, at: String(known.beatAt), process: null };
  }

  async #register(workerId: string, incarnation: number, leaseMs: number): Promise<boolean> {
    const known = this.#workers.get(workerId);
    if (known !== undefined && known.incarnation !== incarnation) {
      if (!this.#isOver(known.beatAt, known.leaseMs)) return false;
      this.#noteLost(workerId, known.incarnation, { ...known, hasEnded: true });
    }
    for (const [key, lost] of this.#lost)
      if (key.startsWith(`${workerId} `) && !lost.isWithdrawn) lost.hasEnded = true;
    if (known?.incarnation !== incarnation) {
      await this.#recover(workerId);
      await this.tables.leases.enlist(workerId);
    }
    this.#workers.set(workerId, { incarnation, leaseMs, beatAt: this.#options.clock.now() });
    return true;
  }

  async #registerAgain(workerId: string, incarnation: number, leaseMs: number): Promise<boolean> {
    if (this.#workers.has(workerId)) return false;
    this.#orphaned.delete(workerId);
    await this.tables.leases.enlist(workerId);
    this.#workers.set(workerId, { incarnation, leaseMs, beatAt: this.#options.clock.now() });
    return true;
  }

  /** L7: returns the lease with what is known about the registration that was lost. */
  #named(lease: Lease): Lease {
    const { lostOwner } = lease;
    if (lostOwner === undefined) return lease;
    const found = [...this.#lost].findLast(([key]) => key.startsWith(`${lostOwner.workerId} `))?.[1];
    if (found === undefined) return lease;
    const { incarnation, lostAt, hasEnded } = found;
    return {
      ...lease,
      lostOwner: { ...lostOwner, registration: String(incarnation), at: lostAt, hasEnded },
      lostAt,
    };
  }

  #hasEnded({ workerId, registration, hasEnded }: LostOwner): boolean {
    const lost = registration === null ? undefined : this.#lost.get(`${workerId} ${registration}`);
    if (lost === undefined) return hasEnded;
    return !lost.isWithdrawn && (hasEnded || lost.hasEnded || lost.knownAt <= this.#options.clock.now());
  }

  /** Makes the runs ready that a claim has taken whose answer did not arrive. A claim that arrives later takes none. */
  async #free(id: string): Promise<void> {
    const answer = this.#answers.get(id);
    if (answer === undefined) {
      this.#answers.set(id, { body: JSON.stringify({ value: none }), changes: none });
      return;
    }
    const { value } = JSON.parse(answer.body) as { readonly value?: readonly Lease[] };
    for (const lease of value ?? none)
      try {
        await this.tables.leases.release(lease, { kind: "ready" });
      } catch (error) {
        // Another claim has taken the run.
        if (Fault.from(error).code !== "lease_lost") throw error;
      }
  }
}

/** What a tail begins with. */
export interface TailRequest {
  readonly fromSeq?: number;
  readonly types?: readonly EventType[];
}

/** The items that a tail has yielded since the last call. */
export interface TakenTail {
  readonly items: readonly (Event | Delta)[];
  readonly isOver: boolean;
  readonly failure?: Failure;
}

/** Returns the JSON of arguments, some of which may be `undefined`. */
export function argumentsText(given: readonly unknown[]): string {
  return JSON.stringify(
    given.map((each) => (each === undefined ? [] : [each])),
    tagged,
  );
}

/** The name of the member that represents a value which is not JSON. */
const tag = "simulated: not JSON";

/**
 * Replaces a value that is not JSON by an object with a mark, so that the tables refuse it as they would refuse the
 * value itself.
 */
function tagged(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const given = this[key];
  switch (typeof given) {
    case "number":
      return Number.isFinite(given) ? given : { [tag]: String(given) };
    case "bigint":
    case "function":
    case "symbol":
      return { [tag]: typeof given };
    case "undefined":
      return Array.isArray(this) ? { [tag]: "undefined" } : undefined;
    default:
      return typeof value === typeof given && isPlain(given) ? value : { [tag]: "object" };
  }
}

function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function untagged(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !(tag in value)) return value;
  const kind = String(value[tag]);
  return /^-?(?:NaN|Infinity)$/u.test(kind) ? Number(kind) : Symbol(kind);
}

function argumentsOf(body: string): never[] {
  return (JSON.parse(body, untagged) as readonly (readonly never[])[]).map(([each]) => each as never);
}

/** Returns the value of an answer. If the answer is a fault, throws it. */
export function valueOf({ body }: DatabaseAnswer): unknown {
  const { value, failure } = JSON.parse(body) as { readonly value?: unknown; readonly failure?: Failure };
  if (failure !== undefined) throw reviveFault(failure);
  return value;
}

function keyOf(workerId: string, incarnation: number): string {
  return `${workerId} ${incarnation}`;
}

function bytesOf(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

async function all<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const none: readonly never[] = [];

import {
  assertOutcome,
  digestOf,
  Fault,
  reviveFault,
  type ClaimOptions,
  type Clock,
  type Commit,
  type Creation,
  type Delta,
  type EnlistOptions,
  type Event,
  type EventLoop,
  type Guest,
  type Hash,
  type InboxSettings,
  type Journal,
  type Lease,
  type Random,
  type RunId,
  type RunRecord,
  type Store,
  type StoreChange,
  type TailOptions,
} from "../../../kernel/index.ts";
import { WorkerBeats } from "../worker-beats.ts";
import {
  argumentsText,
  valueOf,
  type DatabaseAnswer,
  type DatabaseRequest,
  type TailRequest,
  type TakenTail,
} from "./database.ts";

/**
 * The connection of a store to its database. `send` rejects with `LostConnection` if no answer arrives; the
 * database may still have performed the request. The same request may be sent again.
 */
export interface DatabaseLink {
  /** Name of this process. */
  readonly client: string;
  send(request: DatabaseRequest): Promise<DatabaseAnswer>;
}

/** No answer has arrived. */
export class LostConnection extends Error {}

export interface SimulatedStoreOptions {
  readonly link: DatabaseLink;
  readonly clock: Clock;
  readonly eventLoop: EventLoop;
  readonly random: Random;
  readonly hash: Hash;
  /** Calls the function at an interval that does not depend on changes of the clock. */
  readonly every: (ms: number, call: () => void) => () => void;
  readonly inbox: InboxSettings;
  /** Time after its last sign of life after which a worker counts as dead, in milliseconds. Default: 15_000. */
  readonly leaseMs?: number;
  /** Interval at which the store looks for changes that were not announced by a notification. Default: 1_000. */
  readonly pollMs?: number;
  /** Time for which a request without an answer is sent again. Default: 10_000. */
  readonly retryForMs?: number;
}

/** A simulated store, with the functions that the simulated network calls. */
export interface SimulatedStore {
  readonly store: Store;
  /** A notice of a change has arrived. */
  readonly noticed: (change: StoreChange) => void;
  /** Called when a notification says that an open tail has something new. */
  readonly tailNoticed: (tail: string) => void;
}

const firstDelayMs = 20;
const longestDelayMs = 1_000;

/**
 * A store whose tables are in a `SimulatedDatabase`, behind a connection that may lose, delay and repeat messages.
 * It behaves like the PostgreSQL store: it sends a request again until its outcome is known, and sends signs of
 * life for its workers.
 */
export function simulatedStore(options: SimulatedStoreOptions): SimulatedStore {
  const client = new StoreClient(options);
  return {
    store: storeOn(client, options.inbox),
    noticed: (change) => client.noticed(change),
    tailNoticed: (tail) => client.tailNoticed(tail),
  };
}

class StoreClient {
  readonly options: SimulatedStoreOptions;
  readonly leaseMs: number;
  readonly beats: WorkerBeats;
  readonly onLost = new Map<string, NonNullable<EnlistOptions["onLost"]>>();
  readonly #listeners = new Set<(change: StoreChange) => void>();
  readonly #tails = new Map<string, () => void>();
  /** L13: the runs that this process has claimed, with the registration of their worker at that time. */
  readonly #owned = new Map<RunId, { readonly lease: Lease; registration: object | undefined }>();
  /** Claims whose outcome is unknown. */
  readonly #strays = new Set<string>();
  #requests = 0;
  #cancelPoll: (() => void) | undefined;
  isClosed = false;

  constructor(options: SimulatedStoreOptions) {
    const { clock, eventLoop, random, every, leaseMs = 15_000 } = options;
    this.options = options;
    this.leaseMs = leaseMs;
    this.beats = new WorkerBeats({
      clock,
      eventLoop,
      every,
      leaseMs,
      incarnation: () => Math.floor(random.next() * 2 ** 47),
      onLost: (workerId) => {
        // `onLost` of the worker got the fault, or the next claim rejects with it.
        this.keep(workerId).catch(() => undefined);
      },
      table: {
        address: "the simulated database",
        now: () => this.call("workers.now"),
        lastBeat: (workerId) => this.call("workers.last", workerId),
        register: (workerId, incarnation) => this.call("workers.register", workerId, incarnation, leaseMs),
        registerAgain: (workerId, incarnation) =>
          this.call("workers.registerAgain", workerId, incarnation, leaseMs),
        beat: async (workerId, incarnation) =>
          valueOf(await this.#once("workers.beat", [workerId, incarnation])) as number | undefined,
        withdraw: (workerId, incarnation) => this.call("workers.withdraw", workerId, incarnation),
        unregister: (workerId, incarnation) => this.call("workers.unregister", workerId, incarnation),
        hasEnded: () => false,
      },
    });
  }

  /**
   * Performs a request once. It sends the request again while its outcome is unknown. If the outcome stays unknown,
   * `onUnknown` gets the id of the request.
   */
  async call<Value>(method: string, ...given: readonly unknown[]): Promise<Value> {
    return (await this.request(method, given)) as Value;
  }

  async request(
    method: string,
    given: readonly unknown[],
    onUnknown?: (id: string) => void,
  ): Promise<unknown> {
    const { link, eventLoop, retryForMs = 10_000 } = this.options;
    const request = this.#newRequest(method, given);
    const began = eventLoop.elapsed();
    for (let delayMs = firstDelayMs; ; delayMs = Math.min(longestDelayMs, delayMs * 2)) {
      if (this.isClosed) throw closed();
      try {
        const answer = await link.send(request);
        for (const change of answer.changes) this.#tell(change);
        return valueOf(answer);
      } catch (error) {
        if (!(error instanceof LostConnection)) throw error;
        if (eventLoop.elapsed() - began + delayMs > retryForMs) {
          onUnknown?.(request.id);
          throw unreachable(error);
        }
        await this.pause(delayMs);
      }
    }
  }

  /** Sends a request that is not sent again. */
  async #once(method: string, given: readonly unknown[]): Promise<DatabaseAnswer> {
    if (this.isClosed) throw closed();
    return this.options.link.send(this.#newRequest(method, given));
  }

  /** Sends a request whose outcome does not matter. */
  tell(method: string, ...given: readonly unknown[]): void {
    this.#once(method, given).catch(() => undefined);
  }

  #newRequest(method: string, given: readonly unknown[]): DatabaseRequest {
    const { client } = this.options.link;
    return { id: `${client}#${++this.#requests}`, client, method, body: argumentsText(given) };
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.options.every(ms, () => {
        cancel();
        resolve();
      });
    });
  }

  listen(listener: (change: StoreChange) => void): () => void {
    if (this.#listeners.size === 0)
      this.#cancelPoll = this.options.every(this.options.pollMs ?? 1_000, () => void this.#poll());
    this.#listeners.add(listener);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#cancelPoll?.();
    };
  }

  /** Finds changes that were not announced by a notification. */
  async #poll(): Promise<void> {
    try {
      if (valueOf(await this.#once("workers.haveDied", [])) === true) this.#tell({ kind: "worker" });
    } catch {
      // Readers and writers get the error themselves. The next poll asks again.
    }
    this.#tell({ kind: "other" });
  }

  noticed(change: StoreChange): void {
    if (change.kind === "seized") this.#owned.delete(change.runId);
    this.#tell(change.kind === "new" || change.kind === "mail" ? { ...change, writer: "worker" } : change);
  }

  #tell(change: StoreChange): void {
    if (this.isClosed) return;
    for (const listener of this.#listeners) listener(change);
  }

  tailNoticed(tail: string): void {
    this.#tails.get(tail)?.();
  }

  /** L12: notifies the worker if its registration was lost. */
  async keep(workerId: string): Promise<void> {
    try {
      await this.beats.keep(workerId);
    } catch (error) {
      const onLost = this.onLost.get(workerId);
      const fault = Fault.from(error);
      const isFinal = fault.code !== "store_unavailable";
      if (isFinal) this.onLost.delete(workerId);
      onLost?.(fault);
      if (isFinal || onLost === undefined) throw fault;
    }
  }

  async claim(options: ClaimOptions): Promise<readonly Lease[]> {
    const { workerId } = options;
    this.beats.refuseWrongClock();
    await this.keep(workerId);
    for (const id of this.#strays) {
      await this.call("leases.free", id);
      this.#strays.delete(id);
    }
    const registration = this.beats.registration(workerId);
    const note = (id: string): void => void this.#strays.add(id);
    const leases = (await this.request("leases.claim", [options], note)) as readonly Lease[];
    for (const lease of leases) this.#owned.set(lease.runId, { lease, registration });
    return leases;
  }

  async seize(runId: RunId, workerId: string): Promise<Lease | undefined> {
    const registration = this.beats.registration(workerId);
    const lease = await this.call<Lease | undefined>("leases.seize", runId, workerId);
    if (lease !== undefined) this.#owned.set(runId, { lease, registration });
    return lease;
  }

  /**
   * J3: checks a lease. It answers from memory while no other worker can have taken over the run, and asks the
   * database otherwise.
   */
  async check(lease: Lease): Promise<void> {
    const { runId, epoch, workerId } = lease;
    const registration = this.beats.registration(workerId);
    const known = this.#owned.get(runId);
    const isKnown = known?.lease.epoch === epoch && known.lease.workerId === workerId;
    if (isKnown && known.registration === registration && this.beats.isFresh(workerId)) return;
    await this.call("leases.check", lease);
    if (isKnown) known.registration = registration;
  }

  async release(lease: Lease, rest: unknown): Promise<void> {
    await this.call("leases.release", lease, rest);
    if (this.#owned.get(lease.runId)?.lease.epoch === lease.epoch) this.#owned.delete(lease.runId);
  }

  /**
   * E2, E3: yields the items of the tail at the database. If the connection or the database is lost, it opens
   * another tail.
   */
  async *tail(
    runId: RunId,
    { fromSeq = 0, types, signal, life }: TailOptions,
  ): AsyncGenerator<Event | Delta, undefined> {
    let wake = Promise.withResolvers<void>();
    const ring = (): void => wake.resolve();
    const guest: Guest = { lifeEnded: ring };
    signal?.addEventListener("abort", ring);
    life?.join(guest);
    let [next, tail]: [number, string | undefined] = [fromSeq, undefined];
    const cancelPoll = this.options.every(this.options.pollMs ?? 1_000, ring);
    try {
      for (;;) {
        if (signal?.aborted === true) return undefined;
        wake = Promise.withResolvers<void>();
        const isLast = life?.fault !== undefined;
        if (tail === undefined) {
          const request: TailRequest = { fromSeq: next, ...(types !== undefined && { types }) };
          tail = await this.call<string>("events.openTail", runId, request);
          this.#tails.set(tail, () => ring());
        }
        const taken: TakenTail | null = await this.call("events.takeTail", tail);
        if (taken === null) {
          this.#tails.delete(tail);
          tail = undefined;
          continue;
        }
        for (const item of taken.items) {
          yield item;
          if ("seq" in item) next = item.seq + 1;
        }
        if (taken.failure !== undefined) throw reviveFault(taken.failure);
        if (taken.isOver) return undefined;
        if (isLast) throw life.fault;
        if (taken.items.length === 0) await wake.promise;
      }
    } finally {
      cancelPoll();
      signal?.removeEventListener("abort", ring);
      life?.leave(guest);
      if (tail !== undefined) {
        this.#tails.delete(tail);
        if (!this.isClosed) this.tell("events.endTail", tail);
      }
    }
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.#cancelPoll?.();
    // If the database cannot be reached, the leases of the workers expire.
    await this.beats.close().catch(() => undefined);
    this.isClosed = true;
  }
}

function storeOn(client: StoreClient, inbox: InboxSettings): Store {
  /** Creates a method whose arguments and result are JSON. */
  const plain =
    (method: string) =>
    (...given: readonly unknown[]): Promise<never> =>
      client.call(method, ...given);
  const list = async function* <Item>(method: string, ...given: readonly unknown[]): AsyncIterable<Item> {
    yield* await client.call<readonly Item[]>(method, ...given);
  };
  /** J10: returns the form of a commit that is sent: with digests, and without values that JSON would change. */
  const stored = (commit: Commit): Commit => {
    if (commit.steps === undefined) return commit;
    const steps = commit.steps.map((step) => {
      assertOutcome(step);
      return { ...step, digest: digestOf(step, client.options.hash) };
    });
    return { ...commit, steps };
  };
  const journal: Journal = {
    create: async (run, first, flight) => client.call<Creation>("journal.create", run, stored(first), flight),
    append: async (lease, commit, submissions) => {
      const sent = submissions?.map((each) => ({ ...each, first: stored(each.first) }));
      const known = await client.call<Commit | undefined>("journal.append", lease, stored(commit), sent);
      return known ?? commit;
    },
    find: plain("journal.find"),
    summary: plain("journal.summary"),
    list: plain("journal.list"),
    count: plain("journal.count"),
    changes: plain("journal.changes"),
    approvals: plain("journal.approvals"),
    read: (runId, from) => list<Commit>("journal.read", runId, from),
    replay: async (runId, visit) => {
      const { record, commits } = await client.call<{
        readonly record: RunRecord;
        readonly commits: readonly Commit[];
      }>("journal.commits", runId);
      for (const commit of commits) visit(commit);
      return record;
    },
    delete: plain("journal.delete"),
    collect: ({ except, ...options }) => client.call("journal.collect", options, except?.() ?? []),
  };
  return {
    journal,
    events: {
      read: (runId, from) => list<Event>("events.read", runId, from),
      keep: async (runId) => {
        const events = await client.call<readonly Event[]>("events.read", runId);
        return () => events;
      },
      tail: (runId, options = {}) => client.tail(runId, options),
      lastSeq: plain("events.lastSeq"),
      putDelta: (lease, delta) => client.tell("events.putDelta", lease, delta),
      verify: plain("events.verify"),
    },
    mailbox: {
      put: plain("mailbox.put"),
      read: plain("mailbox.read"),
      receiverOf: plain("mailbox.receiverOf"),
    },
    inbox: {
      settings: inbox,
      deliver: plain("inbox.deliver"),
      peek: plain("inbox.peek"),
      find: plain("inbox.find"),
      next: plain("inbox.next"),
      ack: plain("inbox.ack"),
      nack: plain("inbox.nack"),
      deadLetters: plain("inbox.deadLetters"),
      redeliver: plain("inbox.redeliver"),
      waiting: plain("inbox.waiting"),
    },
    sessions: {
      apply: plain("sessions.apply"),
      find: plain("sessions.find"),
      read: plain("sessions.read"),
      readPath: plain("sessions.readPath"),
      list: plain("sessions.list"),
      delete: plain("sessions.delete"),
      collect: plain("sessions.collect"),
    },
    contents: {
      put: (owner, bytes) => client.call("contents.put", owner, Buffer.from(bytes).toString("base64")),
      get: async (owner, hash) => {
        const found = await client.call<string | undefined>("contents.get", owner, hash);
        return found === undefined ? undefined : new Uint8Array(Buffer.from(found, "base64"));
      },
      share: plain("contents.share"),
      release: plain("contents.release"),
      owners: plain("contents.owners"),
    },
    leases: {
      enlist: async (workerId, { onLost } = {}) => {
        if (onLost !== undefined) client.onLost.set(workerId, onLost);
        await client.beats.take(workerId);
      },
      dismiss: async (workerId) => {
        client.onLost.delete(workerId);
        await client.beats.drop(workerId);
      },
      claim: (options) => client.claim(options),
      seize: (runId, workerId) => client.seize(runId, workerId),
      check: (lease) => client.check(lease),
      release: (lease, rest) => client.release(lease, rest),
      nextWakeAt: plain("leases.nextWakeAt"),
      isConfirmed: (workerId) => client.beats.isFresh(workerId),
      countReady: plain("leases.countReady"),
      haveEnded: plain("leases.haveEnded"),
      findReady: plain("leases.findReady"),
    },
    topics: { apply: plain("topics.apply"), followers: plain("topics.followers") },
    records: {
      get: plain("records.get"),
      put: plain("records.put"),
      delete: plain("records.delete"),
      list: plain("records.list"),
      due: plain("records.due"),
      nextDueAt: plain("records.nextDueAt"),
    },
    usage: { sum: plain("usage.sum"), draw: plain("usage.draw") },
    scores: { put: plain("scores.put"), list: plain("scores.list") },
    onChange: (listener) => client.listen(listener),
    close: () => client.close(),
  };
}

function unreachable(cause: Error): Fault {
  return new Fault("store_unavailable", "the simulated database cannot be reached", { cause });
}

function closed(): Fault {
  return new Fault("closed", "the store at the simulated database was closed");
}

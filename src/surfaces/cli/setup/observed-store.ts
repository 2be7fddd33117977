import {
  andThen,
  Fault,
  type Commit,
  type Journal,
  type Lease,
  type Leases,
  type MaybePromise,
  type Rest,
  type Store,
} from "../../../kernel/index.ts";

/** Is informed about each action of this process's worker after the action is durable. All methods are optional. */
export interface StoreObserver {
  /** The worker owns the run from now on. */
  claimed?(lease: Lease): void;
  /** The worker has released the run. */
  released?(lease: Lease, rest: Rest): void;
  /** Called when the store refused a call because another worker owns the run. Called once for each lease. */
  leaseLost?(lease: Lease): void;
  /** Called when the registration of the worker was lost (L12). */
  registrationLost?(fault: Fault): void;
  /** A commit of a run that the worker owns. */
  committed?(lease: Lease, commit: Commit): void;
}

/** Passes everything to all observers, in this order. */
export function allObservers(...observers: readonly StoreObserver[]): StoreObserver {
  const each = (tell: (observer: StoreObserver) => void): void => {
    for (const observer of observers) tell(observer);
  };
  return {
    claimed: (lease) => each((to) => to.claimed?.(lease)),
    released: (lease, rest) => each((to) => to.released?.(lease, rest)),
    leaseLost: (lease) => each((to) => to.leaseLost?.(lease)),
    registrationLost: (fault) => each((to) => to.registrationLost?.(fault)),
    committed: (lease, commit) => each((to) => to.committed?.(lease, commit)),
  };
}

/**
 * Wraps a store so that an observer is informed about each claim, commit and release that is made through the
 * store. The wrapper works with every store and every engine, because all of them write through these contracts.
 */
export function observedStore(store: Store, observer: StoreObserver): Store {
  const { journal, leases } = store;
  const watch = new LeaseWatch(observer);
  return {
    events: store.events,
    mailbox: store.mailbox,
    inbox: store.inbox,
    sessions: store.sessions,
    contents: store.contents,
    topics: store.topics,
    records: store.records,
    usage: store.usage,
    scores: store.scores,
    onChange: (listener) => store.onChange(listener),
    close: () => store.close(),
    journal: observedJournal(journal, watch),
    leases: observedLeases(leases, watch),
  };
}

/** Informs the observer about the leases of this process, once about each change. */
class LeaseWatch {
  readonly observer: StoreObserver;
  /** The epoch of each run that this process owns. */
  readonly #owned = new Map<string, number>();

  constructor(observer: StoreObserver) {
    this.observer = observer;
  }

  claimed(lease: Lease): void {
    this.#owned.set(lease.runId, lease.epoch);
    this.observer.claimed?.(lease);
  }

  released(lease: Lease, rest: Rest): void {
    if (this.#forget(lease)) this.observer.released?.(lease, rest);
  }

  /** Calls `work` and reports `lease_lost`. */
  during<Value>(lease: Lease, work: () => MaybePromise<Value>): MaybePromise<Value> {
    try {
      const result = work();
      if (!(result instanceof Promise)) return result;
      return result.catch((error: unknown) => this.#failed(lease, error));
    } catch (error) {
      return this.#failed(lease, error);
    }
  }

  #failed(lease: Lease, error: unknown): never {
    if (Fault.is(error) && error.code === "lease_lost" && this.#forget(lease))
      this.observer.leaseLost?.(lease);
    throw error;
  }

  #forget({ runId, epoch }: Lease): boolean {
    return this.#owned.get(runId) === epoch && this.#owned.delete(runId);
  }
}

function observedJournal(journal: Journal, watch: LeaseWatch): Journal {
  const createAndClaim = journal.createAndClaim?.bind(journal);
  const appendAndRelease = journal.appendAndRelease?.bind(journal);
  return {
    create: (...args) => journal.create(...args),
    append: (lease, commit, submissions) =>
      watch.during(lease, () =>
        andThen(journal.append(lease, commit, submissions), (stored) => {
          watch.observer.committed?.(lease, commit);
          return stored;
        }),
      ),
    ...(createAndClaim !== undefined && {
      createAndClaim: async (...args) => {
        const creation = await createAndClaim(...args);
        if (creation.kind === "created" && creation.lease !== undefined) watch.claimed(creation.lease);
        return creation;
      },
    }),
    ...(appendAndRelease !== undefined && {
      appendAndRelease: async (lease, commit, submissions, rest) => {
        const stored = await watch.during(lease, () => appendAndRelease(lease, commit, submissions, rest));
        watch.observer.committed?.(lease, commit);
        watch.released(lease, rest);
        return stored;
      },
    }),
    find: (runId, scope) => journal.find(runId, scope),
    summary: (runId) => journal.summary(runId),
    list: (query) => journal.list(query),
    count: (query) => journal.count(query),
    changes: (after) => journal.changes(after),
    approvals: (query) => journal.approvals(query),
    read: (runId, from) => journal.read(runId, from),
    replay: (runId, visit) => journal.replay(runId, visit),
    delete: (runId) => journal.delete(runId),
    collect: (options) => journal.collect(options),
  };
}

function observedLeases(leases: Leases, watch: LeaseWatch): Leases {
  return {
    enlist: (workerId, { onLost } = {}) =>
      leases.enlist(workerId, {
        ...(onLost !== undefined && {
          onLost: (fault) => {
            watch.observer.registrationLost?.(fault);
            onLost(fault);
          },
        }),
      }),
    dismiss: (workerId) => leases.dismiss(workerId),
    claim: (options) =>
      andThen(leases.claim(options), (claimed) => {
        for (const lease of claimed) watch.claimed(lease);
        return claimed;
      }),
    seize: async (runId, workerId) => {
      const lease = await leases.seize(runId, workerId);
      if (lease !== undefined) watch.claimed(lease);
      return lease;
    },
    check: async (lease) => {
      await watch.during(lease, () => leases.check(lease));
    },
    release: (lease, rest) => {
      const releasing = watch.during(lease, () => leases.release(lease, rest));
      if (releasing === undefined) {
        watch.released(lease, rest);
        return undefined;
      }
      return releasing.then(() => watch.released(lease, rest));
    },
    nextWakeAt: (now) => leases.nextWakeAt(now),
    isConfirmed: (workerId) => leases.isConfirmed(workerId),
    countReady: (now, limit) => leases.countReady(now, limit),
    haveEnded: (owners) => leases.haveEnded(owners),
    findReady: (options) => leases.findReady(options),
  };
}

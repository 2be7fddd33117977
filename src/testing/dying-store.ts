import { writeSync } from "node:fs";
import type { Commit, Journal, Lease, MaybePromise, Store } from "../kernel/index.ts";

/** The write at which the process dies: write number `at`, counted from 1, before or after the write is executed. */
export interface Death {
  readonly at: number;
  readonly when: "before" | "after";
}

/** Options of `dyingStore`. */
export interface DyingStoreOptions extends Death {
  /** Ends the process and never returns. Default: logs the write to stderr and kills this process with SIGKILL. */
  readonly die?: (write: string) => void;
}

/** A store that counts its writes and kills the process at one of them. */
export interface DyingStore extends Store {
  /** Number of writes that were started, including the write at which the process dies. */
  readonly writes: number;
  /**
   * The kind of each of these writes, in order. Two commits are of one kind if they contain events and changes of the
   * same types.
   */
  readonly kinds: readonly string[];
}

/**
 * Wraps a store so that its n-th write kills the process: before the write, or after it and before the caller gets
 * the result. Later calls never settle and never reach the store.
 *
 * Every call that changes stored data is a write, in all contracts of the store. `leases.claim` is counted only if
 * it returns a lease, and then the process always dies after it. Deltas are not durable and are not counted.
 */
export function dyingStore(store: Store, { at, when, die = killProcess }: DyingStoreOptions): DyingStore {
  const kinds: string[] = [];
  let dead = false;
  const end = (write: string): Promise<never> => {
    dead = true;
    die(`${when} write ${at}: ${write}`);
    return new Promise<never>(() => {});
  };
  const counted: Counted = async (name, write, commit) => {
    if (dead) return new Promise<never>(() => {});
    const last = kinds.push(kindOf(name, commit)) === at;
    if (last && when === "before") return end(name);
    const result = await write();
    return last ? end(name) : result;
  };
  const { journal, mailbox, inbox, sessions, contents, leases, topics, records, scores } = store;
  return {
    kinds,
    get writes() {
      return kinds.length;
    },
    events: store.events,
    usage: {
      sum: (query) => store.usage.sum(query),
      draw: (lease, request) =>
        counted(`usage.draw ${lease.runId} ${request.day}`, () => store.usage.draw(lease, request)),
    },
    scores: {
      put: (runId, score, scope) => counted(`scores.put ${runId}`, () => scores.put(runId, score, scope)),
      list: (runId, scope) => scores.list(runId, scope),
    },
    onChange: (listener) => store.onChange(listener),
    close: () => store.close(),
    journal: {
      create: (run, first, flight) =>
        counted(`journal.create ${run.runId}`, () => journal.create(run, first, flight), first),
      append: (lease, commit, submissions) =>
        counted(
          `journal.append ${lease.runId} commit ${commit.number}`,
          () => journal.append(lease, commit, submissions),
          commit,
        ),
      ...togetherOf(journal, counted),
      delete: (runId) => counted(`journal.delete ${runId}`, () => journal.delete(runId)),
      collect: (options) => counted("journal.collect", () => journal.collect(options)),
      find: (runId, scope) => journal.find(runId, scope),
      summary: (runId) => journal.summary(runId),
      list: (query) => journal.list(query),
      count: (query) => journal.count(query),
      changes: (after) => journal.changes(after),
      approvals: (query) => journal.approvals(query),
      read: (runId, from) => journal.read(runId, from),
      replay: (runId, visit) => journal.replay(runId, visit),
    },
    mailbox: {
      put: (mail, scope) => counted(`mailbox.put ${mail.body.type}`, () => mailbox.put(mail, scope)),
      read: (runId) => mailbox.read(runId),
      receiverOf: (mailId) => mailbox.receiverOf(mailId),
    },
    inbox: {
      settings: inbox.settings,
      deliver: (message) => counted(`inbox.deliver ${message.id}`, () => inbox.deliver(message)),
      ack: (agentId, ids) => counted(`inbox.ack ${agentId}`, () => inbox.ack(agentId, ids)),
      nack: (agentId, ids, time) => counted(`inbox.nack ${agentId}`, () => inbox.nack(agentId, ids, time)),
      redeliver: (agentId, ids, scope) =>
        counted(`inbox.redeliver ${agentId}`, () => inbox.redeliver(agentId, ids, scope)),
      peek: (agentId, limit) => inbox.peek(agentId, limit),
      find: (agentId, ids) => inbox.find(agentId, ids),
      next: (agentId, query) => inbox.next(agentId, query),
      deadLetters: (agentId, scope) => inbox.deadLetters(agentId, scope),
      waiting: (agentIds) => inbox.waiting(agentIds),
    },
    sessions: {
      apply: (changes, options) => counted("sessions.apply", () => sessions.apply(changes, options)),
      delete: (sessionId, scope) =>
        counted(`sessions.delete ${sessionId}`, () => sessions.delete(sessionId, scope)),
      collect: (options) => counted("sessions.collect", () => sessions.collect(options)),
      find: (sessionId, scope) => sessions.find(sessionId, scope),
      read: (sessionId, query) => sessions.read(sessionId, query),
      readPath: (sessionId, query) => sessions.readPath(sessionId, query),
      list: (query) => sessions.list(query),
    },
    contents: {
      put: (owner, bytes) => counted("contents.put", () => contents.put(owner, bytes)),
      share: (hash, owners) => counted(`contents.share ${hash}`, () => contents.share(hash, owners)),
      release: (owner, hash) => counted(`contents.release ${hash}`, () => contents.release(owner, hash)),
      get: (owner, hash) => contents.get(owner, hash),
      owners: (owner, hash) => contents.owners(owner, hash),
    },
    leases: {
      enlist: (workerId, options) => counted("leases.enlist", () => leases.enlist(workerId, options)),
      dismiss: (workerId) => counted("leases.dismiss", () => leases.dismiss(workerId)),
      async claim(options): Promise<readonly Lease[]> {
        if (dead) return new Promise<never>(() => {});
        const claimed = await leases.claim(options);
        if (claimed.length === 0) return claimed;
        const name = `leases.claim ${claimed.map(({ runId }) => runId).join(" ")}`;
        return kinds.push(kindOf(name)) === at ? end(name) : claimed;
      },
      seize: (runId, workerId) => counted(`leases.seize ${runId}`, () => leases.seize(runId, workerId)),
      release: (lease, rest) =>
        counted(`leases.release ${lease.runId} ${rest.kind}`, async () => leases.release(lease, rest)),
      check: (lease) => leases.check(lease),
      nextWakeAt: (now) => leases.nextWakeAt(now),
      isConfirmed: (workerId) => leases.isConfirmed(workerId),
      countReady: (now, limit) => leases.countReady(now, limit),
      haveEnded: (owners) => leases.haveEnded(owners),
      findReady: (options) => leases.findReady(options),
    },
    topics: {
      apply: (changes) => counted("topics.apply", () => topics.apply(changes)),
      followers: (topicId) => topics.followers(topicId),
    },
    records: {
      put: (record, expected, maxRecords) =>
        counted(`records.put ${record.namespace} ${record.key}`, () =>
          records.put(record, expected, maxRecords),
        ),
      delete: (key, expected) =>
        counted(`records.delete ${key.namespace} ${key.key}`, () => records.delete(key, expected)),
      get: (key) => records.get(key),
      list: (query) => records.list(query),
      due: (namespace, now, limit) => records.due(namespace, now, limit),
      nextDueAt: (namespace, after) => records.nextDueAt(namespace, after),
    },
  };
}

type Counted = <Result>(name: string, write: () => MaybePromise<Result>, commit?: Commit) => Promise<Result>;

/** Returns the kind of a write: its method, and for a commit the types of its events and changes. */
function kindOf(name: string, commit?: Commit): string {
  const [method = name] = name.split(" ");
  if (commit === undefined) return method;
  const { events = [], ...changes } = commit;
  return [method, ...new Set([...events.map(({ type }) => type), ...Object.keys(changes)])].join(" ");
}

/** Wraps the optional methods that combine two writes into one, if the store has them. */
function togetherOf(
  journal: Journal,
  counted: Counted,
): Pick<Journal, "createAndClaim" | "appendAndRelease"> {
  const createAndClaim = journal.createAndClaim?.bind(journal);
  const appendAndRelease = journal.appendAndRelease?.bind(journal);
  return {
    ...(createAndClaim !== undefined && {
      createAndClaim: (run, first, ...rest) =>
        counted(`journal.createAndClaim ${run.runId}`, () => createAndClaim(run, first, ...rest), first),
    }),
    ...(appendAndRelease !== undefined && {
      appendAndRelease: (lease, commit, ...rest) =>
        counted(
          `journal.appendAndRelease ${lease.runId} commit ${commit.number}`,
          () => appendAndRelease(lease, commit, ...rest),
          commit,
        ),
    }),
  };
}

/** Kills this process as `kill -9` does: nothing is closed or flushed. Only one line on stderr names the write. */
function killProcess(write: string): void {
  writeSync(2, `killed ${write}\n`);
  process.kill(process.pid, "SIGKILL");
}

import {
  missingRun,
  type EventLog,
  type Journal,
  type Lifetime,
  type Mailbox,
  type MaybePromise,
  type Records,
  type RunId,
  type Scores,
  type Store,
  type TenantScope,
} from "../../kernel/index.ts";

/** The part of a store that handles of runs use. */
export interface RunStore extends Pick<Store, "sessions" | "onChange"> {
  readonly journal: Pick<Journal, "approvals" | "create" | "find" | "read" | "summary">;
  readonly events: Pick<EventLog, "keep" | "lastSeq" | "read" | "tail">;
  readonly mailbox: Pick<Mailbox, "put" | "read">;
  readonly records: Pick<Records, "get" | "put">;
  readonly scores: Scores;
}

/**
 * S6: the store for the handles of a tenant's runs. A run outside the scope is not found. Every call checks the scope,
 * because another tenant may use the id of a deleted run again.
 */
export function scopedStore(store: RunStore, scope: TenantScope): RunStore {
  const { journal, events, mailbox, sessions, scores } = store;
  const check = async (runId: RunId): Promise<void> => {
    if ((await journal.find(runId, scope)) === undefined) throw missingRun(runId);
  };
  const checked = <Result>(runId: RunId, call: () => MaybePromise<Result>): Promise<Result> =>
    check(runId).then(call);
  async function* readChecked<Item>(runId: RunId, read: () => AsyncIterable<Item>): AsyncIterable<Item> {
    await check(runId);
    yield* read();
  }
  return {
    journal: {
      approvals: (query) => journal.approvals({ ...query, ...scope }),
      create: (run, first, flight) => journal.create(run, first, flight),
      find: (runId) => journal.find(runId, scope),
      read: (runId, from) => readChecked(runId, () => journal.read(runId, from)),
      summary: (runId) => checked(runId, () => journal.summary(runId)),
    },
    events: {
      keep: (runId) => checked(runId, () => events.keep(runId)),
      lastSeq: (runId) => checked(runId, () => events.lastSeq(runId)),
      read: (runId, fromSeq) => readChecked(runId, () => events.read(runId, fromSeq)),
      tail: (runId, options) => ({
        [Symbol.asyncIterator]: () => checkedReader(() => check(runId), events.tail(runId, options)),
      }),
    },
    mailbox: {
      put: (mail) => mailbox.put(mail, scope),
      read: (runId) => checked(runId, () => mailbox.read(runId)),
    },
    records: store.records,
    scores: {
      put: (runId, score) => scores.put(runId, score, scope),
      list: (runId) => scores.list(runId, scope),
    },
    sessions,
    onChange: (listener) => store.onChange(listener),
  };
}

/**
 * Reads items after a check. It is not a generator, because a generator could not be ended while it waits for an
 * item.
 */
function checkedReader<Item>(check: () => Promise<void>, items: AsyncIterable<Item>): AsyncIterator<Item> {
  const reader = items[Symbol.asyncIterator]();
  let checking: Promise<void> | undefined;
  return {
    next: () => (checking ??= check()).then(() => reader.next()),
    return: async () => (await reader.return?.()) ?? { value: undefined, done: true },
  };
}

/** Resolves when the run has ended, whichever process executes it. Rejects when the lifetime ends. */
export async function runEnded(
  { journal, events }: Pick<RunStore, "journal" | "events">,
  runId: RunId,
  life: Lifetime,
): Promise<void> {
  let fromSeq = 0;
  for (;;) {
    const summary = await journal.summary(runId);
    if (summary === undefined || summary.endedAt !== null) return;
    // A run that was resumed has ended before.
    for await (const event of events.tail(runId, { fromSeq, types: ["run_end"], life }))
      if ("seq" in event) fromSeq = event.seq + 1;
  }
}

import {
  allRuns,
  Fault,
  unfinishedStatuses,
  type ApprovalPage,
  type OpenApproval,
  type Runtime,
  type RunSummary,
  type Store,
} from "../../../kernel/index.ts";
import { allRecords, namespaces, overwrite, remove } from "../channel-records.ts";
import { shortDigest } from "../../http/short-digest.ts";
import type { Posted } from "../work/outbox.ts";
import { ChannelLease } from "../work/channel-lease.ts";
import { wait } from "../work/wait.ts";
import {
  endedNotice,
  matches,
  notifiesAbout,
  waitingNotice,
  type AskedPerson,
  type Notice,
  type NotificationRule,
} from "./rule.ts";

/** A rule with what stores and sends its notifications. */
export interface RuleTarget {
  readonly rule: NotificationRule;
  readonly conversationId: string;
  readonly post: (message: Posted) => Promise<void>;
}

export interface NotifierOptions {
  readonly runtime: Runtime;
  readonly store: Pick<Store, "records" | "onChange">;
  readonly targets: readonly RuleTarget[];
  readonly log: (line: string) => void;
}

/** The only kind of runs about which notifications are sent. Compactions and children are parts of other work. */
const kind = "invocation";
/** Prefix of the keys of unfinished runs. No rule has such a name. */
const openPrefix = "@open/";
/** Prefix of the keys of ended runs whose questions were read. They are not stored. */
const askedPrefix = "@asked/";
/** Time by which the clocks of processes that submit runs may differ, in milliseconds. */
const overlapMs = 60_000;
/**
 * Interval at which the runs are checked, in milliseconds. It is needed because a store does not announce all
 * changes of runs.
 */
const lookMs = 1_000;
const dayMs = 86_400_000;
const maxKnown = 10_000;

/**
 * Detects which runs wait for a person or have ended, in whatever process they execute, also if this happened while
 * no notifier was open. If a question was answered between two checks, it is detected when its run has ended. The
 * notifier keeps a record of each unfinished run and of each notification. A notification is stored before its
 * record, so that a crash repeats it with the same delivery id. One check costs O(unfinished runs + open questions
 * + runs of the last minute), and the log of each ended run is read once.
 */
export class Notifier {
  readonly #options: NotifierOptions;
  readonly #lease: ChannelLease;
  readonly #closing = new AbortController();
  /** Keys of records that are stored, so that a check need not ask the store for each of them. */
  readonly #known = new Set<string>();
  #running: Promise<void> | undefined;

  constructor(options: NotifierOptions) {
    this.#options = options;
    const { store, runtime } = options;
    this.#lease = new ChannelLease(store.records, runtime.clock, "@notifications");
  }

  start(): void {
    if (this.#options.targets.length > 0) this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { runtime, log } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      try {
        if (await this.#lease.renew()) await this.#look();
      } catch (error) {
        if (!signal.aborted) log(`notifications: ${Fault.from(error).message}`);
      }
      await wait(runtime.clock, lookMs, signal);
    }
    await this.#lease.release();
  }

  async #look(): Promise<void> {
    for await (const open of this.#openQuestions()) await this.#notifyWaiting(open);
    await this.#lookAtEnds();
  }

  async *#openQuestions(): AsyncIterable<OpenApproval> {
    let after: string | null = null;
    do {
      const page: ApprovalPage = await this.#options.runtime.approvals({
        limit: 500,
        ...(after !== null && { after }),
      });
      yield* page.approvals;
      after = page.next;
    } while (after !== null);
  }

  async #notifyWaiting(asked: AskedPerson): Promise<void> {
    const { runId, approvalId, rootAgentId: agentId, userId, tenantId } = asked;
    for (const target of this.#options.targets)
      if (notifiesAbout(target.rule, "waiting") && matches(target.rule, { agentId, userId, tenantId }))
        await this.#notify(target, shortDigest("waiting", runId, approvalId), runId, waitingNotice(asked));
  }

  /** Notifies about the questions of an ended run that no check has found open. */
  async #notifyAsked(run: RunSummary): Promise<void> {
    const isWanted = this.#options.targets.some(
      ({ rule }) => notifiesAbout(rule, "waiting") && matches(rule, run),
    );
    const key = `${askedPrefix}${run.runId}/${run.endedAt}`;
    if (!isWanted || this.#isKnown(key)) return;
    const { runId, agentId: rootAgentId, sessionId, userId, tenantId } = run;
    const handle = await this.#options.runtime.find(runId);
    for await (const event of handle?.events({ follow: false, types: ["approval_request"] }) ?? [])
      if (event.type === "approval_request") {
        const { approvalId, kind: asks, toolName } = event.data;
        const session = sessionId !== undefined && { sessionId };
        const place = { runId, rootAgentId, ...session, userId, tenantId };
        await this.#notifyWaiting({ ...place, approvalId, kind: asks, toolName, requestedAt: event.at });
      }
    this.#known.add(key);
  }

  /** Notifies about runs that have ended since the last check: new runs, and runs that were unfinished. */
  async #lookAtEnds(): Promise<void> {
    const { runtime, store } = this.#options;
    const cursor = { namespace: namespaces.cursors, key: "@notifications" };
    const stored = (await store.records.get(cursor))?.value as { readonly since: number } | undefined;
    const since = stored?.since ?? runtime.clock.now();
    const startedAt = runtime.clock.now();
    const open = new Set<string>();
    for await (const { runId } of allRuns(runtime, { kind, status: unfinishedStatuses })) {
      await this.#track(runId);
      open.add(runId);
    }
    if (stored !== undefined)
      for await (const run of allRuns(runtime, { kind, createdAfter: since - overlapMs }))
        if (run.endedAt !== null) await this.#notifyOf(run);
    for (const { key } of await allRecords(store.records, namespaces.notified, openPrefix)) {
      const runId = key.slice(openPrefix.length);
      if (open.has(runId)) continue;
      const summary = await (await runtime.find(runId))?.summary();
      if (summary?.endedAt === null) continue;
      if (summary !== undefined) await this.#notifyOf(summary);
      await remove(store.records, { namespace: namespaces.notified, key });
      this.#known.delete(key);
    }
    // The overlap makes a new cursor unnecessary for a while.
    if (stored === undefined || startedAt - since > overlapMs / 2)
      await overwrite(store.records, cursor, { since: startedAt });
  }

  async #track(runId: string): Promise<void> {
    const key = `${openPrefix}${runId}`;
    if (this.#isKnown(key)) return;
    await this.#options.store.records.put({ namespace: namespaces.notified, key, value: true }, "absent");
    this.#known.add(key);
  }

  /**
   * Whether this process knows that a record is stored. From time to time it forgets this and asks the store again.
   */
  #isKnown(key: string): boolean {
    if (this.#known.size > maxKnown) this.#known.clear();
    return this.#known.has(key);
  }

  /** Notifies about a run that has ended. */
  async #notifyOf(run: RunSummary): Promise<void> {
    await this.#notifyAsked(run);
    for (const target of this.#options.targets)
      if (notifiesAbout(target.rule, "ended") && matches(target.rule, run))
        await this.#notify(target, shortDigest("ended", run.runId, run.endedAt), run.runId, endedNotice(run));
  }

  /** Stores a notification, and then a record that it is stored. */
  async #notify(
    { rule, conversationId, post }: RuleTarget,
    id: string,
    runId: string,
    notice: Notice,
  ): Promise<void> {
    const { runtime, store } = this.#options;
    const place = { namespace: namespaces.notified, key: `${rule.name}/${id}` };
    if (this.#isKnown(place.key)) return;
    if ((await store.records.get(place)) !== undefined) return void this.#known.add(place.key);
    const deliveryId = `${rule.name}-${id}`;
    await post({ deliveryId, kind: "notification", conversationId, runId, ...notice });
    await store.records.put({ ...place, value: true, dueAt: runtime.clock.now() + 30 * dayMs }, "absent");
  }
}

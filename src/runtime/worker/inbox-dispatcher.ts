import {
  canonicalJson,
  Fault,
  formatRunId,
  senderTenant,
  type AgentId,
  type Delivery,
  type HostedAgent,
  type Message,
  type NextMail,
  type SubmitOptions,
} from "../../kernel/index.ts";
import { newRun } from "../journal/new-run.ts";
import type { WorkerContext } from "../process/worker-context.ts";

export interface InboxDispatcherOptions {
  readonly worker: WorkerContext;
  /** The agents that this worker hosts. */
  readonly agents: ReadonlyMap<AgentId, HostedAgent>;
  readonly workerId: string;
}

/** Delay after an error of the store. */
const retryMs = 1_000;

/** Maximum number of runs that start for one agent before it is the turn of other waiting agents. */
const batchSize = 16;
/** Number of messages from which a worker chooses those that it tries first. */
const choiceSize = 4 * batchSize;
/** Maximum number of agents whose runs start at the same time. */
const mostAtOnce = 4;

/**
 * Starts runs for the inbox messages of the hosted agents: on `dispatch`, and when a delayed delivery is due. The
 * agents take turns. In a turn one batch of an agent's runs starts, and a few agents have their turn at the same
 * time, so that many messages to one agent do not delay the others.
 */
export class InboxDispatcher {
  readonly #options: InboxDispatcherOptions;
  /** The agents with messages, in the order of their turns. */
  readonly #waiting = new Set<AgentId>();
  readonly #starting = new Set<AgentId>();
  #isReading = false;
  /** Whether `dispatch` was called since the last read of the inboxes. */
  #isDue = false;
  #isClosed = false;
  #timer: { readonly at: number; readonly stop: () => void } | undefined;

  constructor(options: InboxDispatcherOptions) {
    this.#options = options;
  }

  /** Reads the inboxes. Calls during a read cause one more read after it. */
  dispatch(): void {
    this.#isDue = true;
    if (!this.#isReading && !this.#isClosed) void this.#read();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.stop();
  }

  async #read(): Promise<void> {
    const { worker, agents } = this.#options;
    this.#isReading = true;
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      try {
        for (const agentId of await worker.store.inbox.waiting([...agents.keys()]))
          this.#waiting.add(agentId);
      } catch (error) {
        this.#retryAfter(error);
      }
      this.#giveTurns();
    }
    this.#isReading = false;
  }

  #giveTurns(): void {
    for (const agentId of this.#waiting) {
      if (this.#isClosed || this.#starting.size >= mostAtOnce) return;
      if (this.#starting.has(agentId)) continue;
      this.#waiting.delete(agentId);
      this.#starting.add(agentId);
      void this.#start(agentId);
    }
  }

  /**
   * Starts runs for an agent. It catches the errors of each agent, so that an agent whose runs cannot be started
   * does not block the others.
   */
  async #start(agentId: AgentId): Promise<void> {
    const { worker, agents, workerId } = this.#options;
    const agent = agents.get(agentId);
    try {
      const batch = agent && (await startBatch(worker, workerId, agent));
      // More messages may wait. They get a later turn.
      if (batch?.isAnyStarted === true) this.#waiting.add(agentId);
      this.#dispatchAt(batch?.at ?? Infinity);
    } catch (error) {
      this.#retryAfter(error);
    }
    this.#starting.delete(agentId);
    this.#giveTurns();
  }

  /** Reports the error and reads the inboxes again later. */
  #retryAfter(error: unknown): void {
    const { worker } = this.#options;
    if (!this.#isClosed) worker.onError(Fault.from(error));
    this.#dispatchAt(worker.clock.now() + retryMs);
  }

  /** Reads the inboxes at this time, unless they are read earlier. Epoch milliseconds; `Infinity` means never. */
  #dispatchAt(at: number): void {
    if (at === Infinity || this.#isClosed || (this.#timer?.at ?? Infinity) <= at) return;
    const { clock } = this.#options.worker;
    this.#timer?.stop();
    const due = (): void => {
      this.#timer = undefined;
      this.dispatch();
    };
    this.#timer = { at, stop: clock.schedule(at, due, { background: true }) };
  }
}

interface Batch {
  /** Whether this worker has started a run. If not, other workers are starting all of these runs. */
  readonly isAnyStarted: boolean;
  /** Time at which the next delayed delivery is due. `null` means never. */
  readonly at: number | null;
}

/**
 * Starts runs for messages in an agent's inbox. Mode `each`: one run per message, for some of the first messages. Mode `together`:
 * one run for all messages, once the run before it has ended.
 */
async function startBatch(worker: WorkerContext, workerId: string, agent: HostedAgent): Promise<Batch> {
  const { inbox: mode = "each" } = agent;
  const { hash, clock, store } = worker;
  if (mode === "together") {
    const { deliveries, at } = await store.inbox.next(agent.id, { mode, now: clock.now() });
    return { isAnyStarted: await startRun(worker, agent, ofOneTenant(deliveries)), at };
  }
  const next = async (): Promise<NextMail> => {
    const { deliveries, at } = await store.inbox.next(agent.id, {
      mode,
      now: clock.now(),
      limit: choiceSize,
    });
    return { deliveries: inOwnOrder(deliveries, (id) => hash(`${workerId} ${id}`)), at };
  };
  const tried = new Set<string>();
  let isAnyStarted = false;
  let { deliveries, at } = await next();
  while (tried.size < batchSize) {
    const delivery = deliveries.find(({ message }) => !tried.has(message.id));
    if (delivery === undefined) break;
    tried.add(delivery.message.id);
    if (await startRun(worker, agent, [delivery])) isAnyStarted = true;
    // Another worker was first. It may have taken further messages.
    else ({ deliveries, at } = await next());
  }
  return { isAnyStarted, at };
}

/**
 * Returns the order in which a worker tries messages. Each worker has a different order, so that few of them try
 * the same message.
 */
function inOwnOrder(
  deliveries: readonly Delivery[],
  placeOf: (messageId: string) => string,
): readonly Delivery[] {
  if (deliveries.length < 2) return deliveries;
  const placed = deliveries.map((delivery) => [placeOf(delivery.message.id), delivery] as const);
  return placed.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, delivery]) => delivery);
}

/**
 * Starts a run and returns whether this call created it. The run id is derived from the first message and the
 * number of its deliveries, so that every worker that tries creates the same run. A worker that is not the first
 * gets its answer at once.
 */
async function startRun(
  worker: WorkerContext,
  agent: HostedAgent,
  deliveries: readonly Delivery[],
): Promise<boolean> {
  const { store, hash } = worker;
  const [head] = deliveries;
  if (head === undefined) return false;
  const { message, deliveries: count, redelivered } = head;
  const suffix = redelivered === undefined ? "" : ` ${redelivered}`;
  const digest = hash(`${agent.id} ${message.id} ${count}${suffix}`).replaceAll(/[^A-Za-z0-9]/g, "-");
  const runId = formatRunId(digest.slice(0, 40));
  const messages = deliveries.map((each) => each.message);
  const { record, first } = newRun(worker, agent, null, { runId, messages, ...sharedSender(messages) });
  const take = { type: "take", agentId: agent.id, messageIds: messages.map(({ id }) => id) } as const;
  const { kind } = await store.journal.create(record, { ...first, inbox: [take] });
  return kind === "created";
}

/**
 * S6: returns the deliveries whose senders have the tenant of the first one, so that no run reads messages of two
 * tenants. The others stay in the inbox for the next run.
 */
function ofOneTenant(deliveries: readonly Delivery[]): readonly Delivery[] {
  const [first] = deliveries;
  if (first === undefined) return [];
  const tenantId = senderTenant(first.message);
  return deliveries.filter(({ message }) => senderTenant(message) === tenantId);
}

/**
 * Returns user, tenant and metadata of a run for these messages. Each is set only if it is the same for all
 * senders.
 */
function sharedSender(messages: readonly Message[]): Pick<SubmitOptions, "userId" | "tenantId" | "metadata"> {
  const [first, ...others] = messages.map(({ sender }) => sender);
  if (first === undefined) return {};
  const isShared = (key: "userId" | "tenantId" | "metadata"): boolean =>
    others.every((other) => canonicalJson(other?.[key] ?? null) === canonicalJson(first[key]));
  const { userId, tenantId, metadata } = first;
  return {
    ...(userId !== null && isShared("userId") && { userId }),
    ...(tenantId !== null && isShared("tenantId") && { tenantId }),
    ...(isShared("metadata") && { metadata }),
  };
}

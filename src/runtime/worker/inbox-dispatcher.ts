import {
  canonicalJson,
  Fault,
  formatRunId,
  senderTenant,
  type AgentId,
  type Delivery,
  type HostedAgent,
  type Message,
  type SubmitOptions,
} from "../../kernel/index.ts";
import { newRun } from "../journal/new-run.ts";
import type { WorkerContext } from "../process/worker-context.ts";

export interface InboxDispatcherOptions {
  readonly worker: WorkerContext;
  /** The agents that this worker hosts. */
  readonly agents: ReadonlyMap<AgentId, HostedAgent>;
}

/** Delay after an error of the store. */
const retryMs = 1_000;

/** Maximum number of runs that start for one agent before the other agents have their turn. */
const batchSize = 16;

/**
 * Starts runs for the inbox messages of the hosted agents: on `dispatch`, and when a delayed delivery is due. The agents take
 * turns: each round starts one batch per agent, so that a flood of messages to one agent does not delay the others.
 */
export class InboxDispatcher {
  readonly #options: InboxDispatcherOptions;
  #isDispatching = false;
  /** Whether `dispatch` was called since the last read of the inboxes. */
  #isDue = false;
  #isClosed = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: InboxDispatcherOptions) {
    this.#options = options;
  }

  /** Reads the inboxes. Calls during a read cause one more read after it. */
  dispatch(): void {
    this.#isDue = true;
    if (!this.#isDispatching && !this.#isClosed) void this.#dispatchAll();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
  }

  async #dispatchAll(): Promise<void> {
    this.#isDispatching = true;
    while (this.#isDue && !this.#isClosed) {
      this.#isDue = false;
      this.#dispatchAt(await this.#startAll());
    }
    this.#isDispatching = false;
  }

  /** Starts one batch per agent. Returns when the next delivery is due. Epoch milliseconds; `Infinity` means never. */
  async #startAll(): Promise<number> {
    const { worker, agents } = this.#options;
    let next = Infinity;
    try {
      for (const agentId of await worker.store.inbox.waiting([...agents.keys()])) {
        if (this.#isClosed) break;
        next = Math.min(next, await this.#start(agentId));
      }
    } catch (error) {
      next = this.#retryAfter(error);
    }
    return next;
  }

  /** Catches errors per agent, so that an agent whose runs cannot be started does not block the others. */
  async #start(agentId: AgentId): Promise<number> {
    const { worker, agents } = this.#options;
    const agent = agents.get(agentId);
    if (agent === undefined) return Infinity;
    try {
      const { isAnyStarted, at } = await startBatch(worker, agent);
      // More messages may wait. They get the next round.
      if (isAnyStarted) this.#isDue = true;
      return at ?? Infinity;
    } catch (error) {
      return this.#retryAfter(error);
    }
  }

  /** Reports the error and returns the time of the next attempt. */
  #retryAfter(error: unknown): number {
    const { worker } = this.#options;
    if (!this.#isClosed) worker.onError(Fault.from(error));
    return worker.clock.now() + retryMs;
  }

  #dispatchAt(at: number): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (at === Infinity || this.#isClosed) return;
    const { worker } = this.#options;
    this.#stopTimer = worker.clock.schedule(at, () => this.dispatch(), { background: true });
  }
}

interface Batch {
  /** Whether this worker has started a run. If not, other workers are starting all of them. */
  readonly isAnyStarted: boolean;
  /** When the next delayed delivery is due. `null` means never. */
  readonly at: number | null;
}

/**
 * Starts runs for messages in an agent's inbox. Mode `each`: one run per message, for the first messages. Mode `together`: one
 * run for all messages, once the run before it has ended.
 */
async function startBatch(worker: WorkerContext, agent: HostedAgent): Promise<Batch> {
  const { inbox: mode = "each" } = agent;
  const limit = mode === "each" ? { limit: batchSize } : {};
  const now = worker.clock.now();
  const { deliveries, at } = await worker.store.inbox.next(agent.id, { mode, now, ...limit });
  const runs = mode === "each" ? deliveries.map((each) => [each]) : [ofOneTenant(deliveries)];
  let isAnyStarted = false;
  for (const messages of runs) if (await startRun(worker, agent, messages)) isAnyStarted = true;
  return { isAnyStarted, at };
}

/**
 * Returns whether this call created the run. The run id is derived from the first message and the number of its
 * deliveries, so that every worker that tries creates the same run. A worker that is not the first gets its answer at once.
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
 * S6: the deliveries whose senders have the tenant of the first one, so that no run reads messages of two tenants. The
 * others stay in the inbox for the next run.
 */
function ofOneTenant(deliveries: readonly Delivery[]): readonly Delivery[] {
  const [first] = deliveries;
  if (first === undefined) return [];
  const tenantId = senderTenant(first.message);
  return deliveries.filter(({ message }) => senderTenant(message) === tenantId);
}

/** User, tenant and metadata of a run for these messages: each is set only if all senders agree on it. */
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

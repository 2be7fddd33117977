import {
  canonicalJson,
  Fault,
  formatRunId,
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
  /** Those hosted here. */
  readonly agents: ReadonlyMap<AgentId, HostedAgent>;
  /** Whether a message that is left alone for a while keeps the process alive. */
  readonly keepAlive: boolean;
}

const retryMs = 1_000;

/** Starts runs for the messages that wait for the agents hosted here: when told that there may be some, and when their time has come. */
export class InboxDispatcher {
  readonly #options: InboxDispatcherOptions;
  #isDispatching = false;
  #isDue = false;
  #isClosed = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: InboxDispatcherOptions) {
    this.#options = options;
  }

  /** One look at a time, and one more for all that was told meanwhile. */
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

  /** When there may be more to start. */
  async #startAll(): Promise<number> {
    const { worker, agents } = this.#options;
    let next = Infinity;
    try {
      for (const agentId of await worker.store.inbox.waiting([...agents.keys()]))
        next = Math.min(next, await this.#start(agentId));
    } catch (error) {
      next = this.#report(error);
    }
    return next;
  }

  /** An agent whose runs cannot be started is not in the way of the others. */
  async #start(agentId: AgentId): Promise<number> {
    const { worker, agents } = this.#options;
    const agent = agents.get(agentId);
    if (agent === undefined) return Infinity;
    try {
      return (await activate(worker, agent)) ?? Infinity;
    } catch (error) {
      return this.#report(error);
    }
  }

  /** It is tried again a moment later. */
  #report(error: unknown): number {
    const { worker } = this.#options;
    if (!this.#isClosed) worker.onError(Fault.from(error));
    return worker.clock.now() + retryMs;
  }

  #dispatchAt(at: number): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (at === Infinity || this.#isClosed) return;
    const { worker, keepAlive } = this.#options;
    this.#stopTimer = worker.clock.schedule(at, () => this.dispatch(), { background: !keepAlive });
  }
}

/**
 * Starts runs for the messages that wait for an agent: each its own, or one for all where none is at it. When there may be more to start
 * without anyone's doing; `null`: never. A run's id follows from the message at its head and how often that was handed back, so that
 * whoever tries, from whatever process, starts the same run.
 */
async function activate(worker: WorkerContext, agent: HostedAgent): Promise<number | null> {
  const { inbox: mail = "each" } = agent;
  for (;;) {
    const { deliveries, at } = await worker.store.inbox.next(agent.id, {
      mode: mail,
      now: worker.clock.now(),
    });
    const shares = mail === "each" ? deliveries.map((each) => [each]) : [deliveries];
    let isBegun = false;
    for (const share of shares) if (await begin(worker, agent, share)) isBegun = true;
    if (!isBegun) return at;
  }
}

async function begin(
  worker: WorkerContext,
  agent: HostedAgent,
  deliveries: readonly Delivery[],
): Promise<boolean> {
  const { store, hash } = worker;
  const [head] = deliveries;
  if (head === undefined) return false;
  const { message, deliveries: tried, redelivered } = head;
  const again = redelivered === undefined ? "" : ` ${redelivered}`;
  const digest = hash(`${agent.id} ${message.id} ${tried}${again}`).replaceAll(/[^A-Za-z0-9]/g, "-");
  const runId = formatRunId(digest.slice(0, 40));
  const messages = deliveries.map((each) => each.message);
  const { record, first } = newRun(worker, agent, null, { runId, messages, ...nameOf(messages) });
  const take = { type: "take", agentId: agent.id, messageIds: messages.map(({ id }) => id) } as const;
  const { kind } = await store.journal.create(record, { ...first, inbox: [take] });
  return kind === "created";
}

/** In whose name a run for these messages is: what is the same for all of them. */
function nameOf(messages: readonly Message[]): Pick<SubmitOptions, "userId" | "tenantId" | "metadata"> {
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

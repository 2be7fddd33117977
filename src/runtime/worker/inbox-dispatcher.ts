import { Fault, type HostedAgent, type AgentId } from "../../kernel/index.ts";
import { activate } from "./inbox-activation.ts";
import type { WorkerContext } from "../process/worker-context.ts";

export interface InboxDispatcherOptions {
  readonly owner: WorkerContext;
  /** Those hosted here. */
  readonly agents: ReadonlyMap<AgentId, HostedAgent>;
  /** Whether a message that is left alone for a while keeps the process alive. */
  readonly keepAlive: boolean;
}

const retryMs = 1_000;

/** Starts runs for the messages that wait for the agents hosted here: when told that there may be some, and when their time has come. */
export class InboxDispatcher {
  readonly #options: InboxDispatcherOptions;
  #isLooking = false;
  #looksAgain = false;
  #isClosed = false;
  #stopTimer: (() => void) | undefined;

  constructor(options: InboxDispatcherOptions) {
    this.#options = options;
  }

  /** One look at a time, and one more for all that was told meanwhile. */
  look(): void {
    this.#looksAgain = true;
    if (!this.#isLooking && !this.#isClosed) void this.#lookAll();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopTimer?.();
  }

  async #lookAll(): Promise<void> {
    this.#isLooking = true;
    while (this.#looksAgain && !this.#isClosed) {
      this.#looksAgain = false;
      this.#lookAgainAt(await this.#startAll());
    }
    this.#isLooking = false;
  }

  /** When there may be more to start. */
  async #startAll(): Promise<number> {
    const { owner, agents } = this.#options;
    let next = Infinity;
    try {
      for (const agentId of await owner.store.inbox.waiting([...agents.keys()]))
        next = Math.min(next, await this.#start(agentId));
    } catch (error) {
      next = this.#report(error);
    }
    return next;
  }

  /** An agent whose runs cannot be started is not in the way of the others. */
  async #start(agentId: AgentId): Promise<number> {
    const { owner, agents } = this.#options;
    const agent = agents.get(agentId);
    if (agent === undefined) return Infinity;
    try {
      return (await activate(owner, agent)) ?? Infinity;
    } catch (error) {
      return this.#report(error);
    }
  }

  /** It is tried again a moment later. */
  #report(error: unknown): number {
    const { owner } = this.#options;
    if (!this.#isClosed) owner.onError(Fault.from(error));
    return owner.clock.now() + retryMs;
  }

  #lookAgainAt(at: number): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    if (at === Infinity || this.#isClosed) return;
    const { owner, keepAlive } = this.#options;
    this.#stopTimer = owner.clock.schedule(at, () => this.look(), { background: !keepAlive });
  }
}

import { deepFreeze, type Agent, type AgentId, type Event, type EventObserver } from "../kernel/index.ts";

/** Shows the events of one run to whoever observes their agents here, once they are durable. */
export class RunObservers {
  readonly #findAgent: (agentId: AgentId) => Agent | undefined;
  readonly #shown = new Set<EventObserver>();

  constructor(findAgent: (agentId: AgentId) => Agent | undefined) {
    this.#findAgent = findAgent;
  }

  show(events: readonly Event[]): void {
    for (const event of events) {
      const observer = this.#findAgent(event.agentId)?.callPath?.observer;
      if (observer === undefined) continue;
      this.#shown.add(observer);
      // E1: a store may hold this very event.
      observer.observe(deepFreeze(event));
    }
  }

  async settled(): Promise<void> {
    for (const observer of this.#shown) await observer.settled();
  }
}

import {
  deepFreeze,
  type Agent,
  type AgentId,
  type Event,
  type EventObserver,
  type RunFacts,
  type TaskId,
  type TaskRecord,
} from "../kernel/index.ts";
import { factsOf, withRunFacts } from "./run-facts-storage.ts";

/** Shows the events of one run to whoever observes their agents here, once they are durable. */
export class RunObservers {
  readonly #findAgent: (agentId: AgentId) => Agent | undefined;
  readonly #findTask: (taskId: TaskId) => TaskRecord;
  readonly #facts = new Map<TaskId, RunFacts>();
  readonly #shown = new Set<EventObserver>();

  constructor(findAgent: (agentId: AgentId) => Agent | undefined, findTask: (taskId: TaskId) => TaskRecord) {
    this.#findAgent = findAgent;
    this.#findTask = findTask;
  }

  show(events: readonly Event[]): void {
    for (const event of events) {
      const observer = this.#findAgent(event.agentId)?.callPath?.observer;
      if (observer === undefined) continue;
      this.#shown.add(observer);
      // Whoever made it durable may be at work for another run. E1: a store may hold this very event.
      withRunFacts(this.#factsOf(event.taskId), () => observer.observe(deepFreeze(event)));
    }
  }

  async settled(): Promise<void> {
    for (const observer of this.#shown) await observer.settled();
  }

  #factsOf(taskId: TaskId): RunFacts {
    const facts = this.#facts.get(taskId) ?? factsOf(this.#findTask(taskId));
    this.#facts.set(taskId, facts);
    return facts;
  }
}

import {
  assertEmittable,
  deepFreeze,
  Fault,
  sealMadeJson,
  type AgentId,
  type Event,
  type EventDraft,
  type EventObserver,
  type ObservedTask,
  type TaskId,
} from "../../kernel/index.ts";
import type { WorkerContext } from "../process/worker-context.ts";
import { factsOf, withRunFacts } from "../process/async-context.ts";
import type { RunState } from "../journal/run-state.ts";

/** Where observers tell of what happened to them. */
export interface ObservedLog {
  /** Whether the event was taken into the run's log. */
  tellObserved(taskId: TaskId, draft: EventDraft): boolean;
}

/** Shows the events of one run to whoever observes their agents here, once they are durable. */
export class RunObservers {
  readonly #worker: WorkerContext;
  readonly #state: RunState;
  readonly #log: ObservedLog;
  /** Few. */
  #shown: EventObserver[] | undefined;
  #tasks: Map<TaskId, ObservedTask> | undefined;

  constructor(worker: WorkerContext, state: RunState, log: ObservedLog) {
    this.#worker = worker;
    this.#state = state;
    this.#log = log;
  }

  show(events: readonly Event[]): void {
    let agentId: AgentId | undefined;
    let observer: EventObserver | undefined;
    for (let index = 0; index < events.length; index++) {
      const event = events[index] as Event;
      if (event.agentId !== agentId) {
        agentId = event.agentId;
        observer = this.#worker.agents.get(agentId)?.callPath?.observer;
      }
      if (observer !== undefined && observer.watches?.(event.type) !== false) this.#show(event, observer);
    }
  }

  /** Nothing to wait for where nobody was shown anything. */
  settled(runId: Event["runId"]): Promise<void> | undefined {
    return this.#shown === undefined ? undefined : settledOf(this.#shown, runId);
  }

  #show(event: Event, observer: EventObserver): void {
    if (this.#shown === undefined) this.#shown = [observer];
    else if (!this.#shown.includes(observer)) this.#shown.push(observer);
    const tasks = (this.#tasks ??= new Map());
    let task = tasks.get(event.taskId);
    if (task === undefined) tasks.set(event.taskId, (task = this.#observed(event)));
    // Whoever made it durable may be at work for another run. E1: a store may hold this very event.
    withRunFacts(task.facts, () => observer.observe(deepFreeze(event), task));
  }

  #observed({ taskId, agentId }: Event): ObservedTask {
    const { record } = this.#state.task(taskId);
    return {
      facts: factsOf(record),
      input: record.input,
      clock: this.#worker.clock,
      emitEvent: (draft) => {
        assertEmittable(draft);
        sealMadeJson(draft.data, `the data of event ${draft.type}`);
        if (!this.#log.tellObserved(taskId, draft)) this.#worker.onError(missed(agentId, draft));
      },
    };
  }
}

/** Also of those who are first shown something while others are waited for. */
async function settledOf(observers: readonly EventObserver[], runId: Event["runId"]): Promise<void> {
  for (const observer of observers) await observer.settled(runId);
}

function missed(agentId: AgentId, draft: EventDraft): Fault {
  const said = draft.type === "hook_error" ? `${draft.data.hook}: ${draft.data.failure.message}` : draft.type;
  return new Fault("internal", `an observer of ${agentId} told of this when the run had ended: ${said}`);
}

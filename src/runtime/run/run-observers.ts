import {
  assertEmittable,
  deepFreeze,
  Fault,
  rootTaskId,
  sealMadeJson,
  type AgentId,
  type Event,
  type EventDraft,
  type EventObserver,
  type MessageSender,
  type ObservedTask,
  type RunRecord,
  type TaskId,
} from "../../kernel/index.ts";
import { portFor, type WorkerContext } from "../process/worker-context.ts";
import type { LiveContext } from "../process/live-contexts.ts";
import { factsOf, withRunFacts } from "../process/async-context.ts";
import type { RunState } from "../journal/run-state.ts";
import { ProgressPublisher } from "./progress-publisher.ts";

/** The log of a run, as its observers write to it. */
export interface ObservedLog {
  /** Emits an event of an observer. Returns `false` if the run has ended or is closed. */
  emitObserved(taskId: TaskId, draft: EventDraft): boolean;
}

export interface RunObserversOptions {
  readonly worker: WorkerContext;
  readonly record: RunRecord;
  readonly state: RunState;
  readonly log: ObservedLog;
  readonly live: LiveContext | undefined;
}

/**
 * Passes the durable events of one run to the observers of their agents in this process, and its progress to the
 * followers of its progress topic.
 */
export class RunObservers {
  readonly #worker: WorkerContext;
  readonly #tenantId: string | null;
  readonly #state: RunState;
  readonly #log: ObservedLog;
  readonly #live: LiveContext | undefined;
  /** Observers that have received an event. A list, because there are few. */
  #notified: EventObserver[] | undefined;
  #tasks: Map<TaskId, ObservedTask> | undefined;
  readonly #progress: ProgressPublisher;

  constructor({ worker, record, state, log, live }: RunObserversOptions) {
    const { runId, tenantId } = record;
    const { store, idleFlusher } = worker;
    const sender = (): MessageSender => {
      const { userId, metadata } = state.task(rootTaskId).record;
      return { runId, userId, tenantId, metadata };
    };
    this.#progress = new ProgressPublisher({
      store,
      idleFlusher,
      runId,
      sender,
      onError: (error) => worker.onError(error),
    });
    this.#worker = worker;
    this.#tenantId = tenantId;
    this.#state = state;
    this.#log = log;
    this.#live = live;
  }

  show(events: readonly Event[]): void {
    this.#progress.show(events);
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

  /** Resolves when every observer has handled the events it received. Returns `undefined` if no observer received any. */
  whenSettled(runId: Event["runId"]): Promise<void> | undefined {
    const sending = this.#progress.whenSent();
    const settled = this.#notified === undefined ? undefined : settledOf(this.#notified, runId);
    return sending === undefined ? settled : sending.then(() => settled);
  }

  #show(event: Event, observer: EventObserver): void {
    if (this.#notified === undefined) this.#notified = [observer];
    else if (!this.#notified.includes(observer)) this.#notified.push(observer);
    const tasks = (this.#tasks ??= new Map());
    let task = tasks.get(event.taskId);
    if (task === undefined) tasks.set(event.taskId, (task = this.#observedTask(event)));
    // The flush may run in the async context of another run. The event is frozen, because a store may hold the same object (E1).
    withRunFacts(task.facts, () => observer.observe(deepFreeze(event), task));
  }

  #observedTask({ taskId, agentId }: Event): ObservedTask {
    const { record } = this.#state.task(taskId);
    const facts = factsOf(this.#tenantId, record, this.#live);
    const worker = this.#worker;
    return {
      facts,
      input: record.input,
      sharesPrompt: record.inherits !== undefined,
      clock: worker.clock,
      get extensionPort() {
        return portFor(worker, facts);
      },
      emitEvent: (draft) => {
        assertEmittable(draft);
        sealMadeJson(draft.data, `the data of event ${draft.type}`);
        if (!this.#log.emitObserved(taskId, draft)) this.#worker.onError(lateEvent(agentId, draft));
      },
    };
  }
}

/** Resolves when all observers have settled, including observers that are added to the list in the meantime. */
async function settledOf(observers: readonly EventObserver[], runId: Event["runId"]): Promise<void> {
  for (const observer of observers) await observer.settled(runId);
}

function lateEvent(agentId: AgentId, draft: EventDraft): Fault {
  const description =
    draft.type === "hook_error" ? `${draft.data.hook}: ${draft.data.failure.message}` : draft.type;
  return new Fault(
    "internal",
    `an observer of agent ${agentId} emitted an event after the run had ended; the event is lost: ${description}`,
  );
}

import {
  assertEmittable,
  copyJson,
  deepFreeze,
  Fault,
  rootTaskId,
  sealMadeJson,
  type AgentId,
  type Delta,
  type Event,
  type EventDraft,
  type EventObserver,
  type JsonValue,
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

/** The methods of a run's log with which its observers write. */
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
 * Passes the durable events of one run to the observers of its agents in this process, and its progress to the
 * followers of its progress topic.
 */
export class RunObservers {
  readonly #worker: WorkerContext;
  readonly #tenantId: string | null;
  readonly #state: RunState;
  readonly #log: ObservedLog;
  readonly #live: LiveContext | undefined;
  /** Observers that have received an event. It is a list and not a set, because there are few. */
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
      if (event.type === "task_continue_as_new") this.#forgetTasks();
    }
  }

  /** J8: forgets the tasks of a history that has ended, because they have no further events. */
  #forgetTasks(): void {
    for (const taskId of this.#tasks?.keys() ?? [])
      if (this.#state.isForgotten(taskId)) this.#tasks?.delete(taskId);
  }

  /** E2: passes a delta to the observer of its agent, if the observer watches deltas. */
  showDelta(delta: Delta): void {
    const { agentId } = this.#state.task(delta.taskId).record;
    const observer = this.#worker.agents.get(agentId)?.callPath?.observer;
    if (observer?.observeDelta === undefined || observer.watches?.(delta.type) === false) return;
    const task = this.#notify(observer, delta.taskId);
    // A copy, because the code of a tool may still change the value that it reported.
    const observed = deepFreeze(copyJson(delta as unknown as JsonValue)) as unknown as Delta;
    withRunFacts(task.facts, () => observer.observeDelta?.(observed, task));
  }

  /**
   * Resolves when every observer has handled the events that it received. Returns `undefined` if no observer
   * received any.
   */
  whenSettled(runId: Event["runId"]): Promise<void> | undefined {
    const sending = this.#progress.whenSent();
    const settled = this.#notified === undefined ? undefined : settledOf(this.#notified, runId);
    return sending === undefined ? settled : sending.then(() => settled);
  }

  #show(event: Event, observer: EventObserver): void {
    const task = this.#notify(observer, event.taskId);
    // The flush may run in the async context of another run. The event is frozen, because a store may hold the same object (E1).
    withRunFacts(task.facts, () => observer.observe(deepFreeze(event), task));
  }

  /** Records that the observer receives an event or delta of a task, and returns the task. */
  #notify(observer: EventObserver, taskId: TaskId): ObservedTask {
    if (this.#notified === undefined) this.#notified = [observer];
    else if (!this.#notified.includes(observer)) this.#notified.push(observer);
    const tasks = (this.#tasks ??= new Map());
    let task = tasks.get(taskId);
    if (task === undefined) tasks.set(taskId, (task = this.#observedTask(taskId)));
    return task;
  }

  #observedTask(taskId: TaskId): ObservedTask {
    const { record } = this.#state.task(taskId);
    const { agentId } = record;
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
        if (this.#log.emitObserved(taskId, draft)) return;
        const { surface } = portFor(worker, facts);
        // A notice that comes after the end belongs to no run any more.
        if (draft.type === "extension_notice" && surface?.notify !== undefined)
          surface.notify({ ...draft.data, sessionId: facts.sessionId });
        else worker.onError(lateEvent(agentId, draft));
      },
    };
  }
}

/** Resolves when all observers have settled, including observers that are added to the list in the meantime. */
async function settledOf(observers: readonly EventObserver[], runId: Event["runId"]): Promise<void> {
  for (const observer of observers) await observer.settled(runId);
}

function lateEvent(agentId: AgentId, draft: EventDraft): Fault {
  const description = descriptionOf(draft);
  return new Fault(
    "internal",
    `an observer of agent ${agentId} emitted an event after the run had ended; the event is lost: ${description}`,
  );
}

function descriptionOf({ type, data }: EventDraft): string {
  switch (type) {
    case "hook_error":
      return `${data.hook}: ${data.failure.message}`;
    case "extension_error":
      return `extension ${data.extension} failed in ${data.event}: ${data.failure.message}`;
    case "extension_notice":
      return `${data.level} of extension ${data.extension}: ${data.message}`;
    default:
      return type;
  }
}

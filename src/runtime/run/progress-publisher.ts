import {
  Fault,
  formatTopicId,
  type AgentId,
  type Event,
  type JsonValue,
  type MaybePromise,
  type MessageSender,
  type RunId,
  type Store,
  type TopicId,
} from "../../kernel/index.ts";
import type { FlushableLog, IdleFlusher, IdleWait } from "../process/idle-flusher.ts";

/** The types of events that are published as progress of a run. */
const progressTypes: ReadonlySet<Event["type"]> = new Set<Event["type"]>([
  "task_start",
  "turn_end",
  "handoff",
  "flow_step_end",
  "architecture_event",
  "task_end",
]);

export interface ProgressPublisherOptions {
  readonly store: Pick<Store, "topics" | "inbox" | "events">;
  readonly idleFlusher: IdleFlusher;
  readonly runId: RunId;
  /** Returns the sender of the messages: the run with its user and tenant. */
  readonly sender: () => MessageSender;
  /** Receives errors that no caller can receive. */
  readonly onError: (error: Fault) => void;
}

/**
 * Sends the progress of a run to the agents that follow its progress topic, as messages `{ seq, type, taskId,
 * agentId, at, data }`. A message's id follows from its event, so that each follower receives it once. Before the
 * first message, all earlier progress is sent, so that a late follower misses nothing, also after a crash of an
 * earlier owner. If a worker dies just after the last commit of a run, the last messages are not sent; the log has
 * them.
 */
export class ProgressPublisher implements FlushableLog {
  readonly #options: ProgressPublisherOptions;
  readonly #topicId: TopicId;
  /** Followers that have received all progress before the current events. */
  readonly #caughtUp = new Set<AgentId>();
  /** Progress that is not sent yet. */
  #pending: Event[] = [];
  /** Pending while progress is. */
  #idleWait: IdleWait | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: ProgressPublisherOptions) {
    this.#options = options;
    this.#topicId = formatTopicId({ type: "agent.progress", source: options.runId });
  }

  show(events: readonly Event[]): void {
    for (let index = 0; index < events.length; index++) {
      const event = events[index] as Event;
      if (progressTypes.has(event.type) && this.#pending.push(event) === 1)
        this.#idleWait = this.#options.idleFlusher.add(this, this.#idleWait);
    }
  }

  /**
   * Sends the pending messages. Called after a turn of the event loop, so that several turns of an agent need only
   * one lookup of the followers.
   */
  writeIdle(): void {
    const progress = this.#pending;
    if (progress.length === 0) return;
    this.#pending = [];
    this.#idleWait?.cancel();
    try {
      const followers = this.#sending === undefined ? this.#followers() : undefined;
      // Most runs have no follower, and most stores say so without a promise.
      if (Array.isArray(followers) && followers.length === 0) return;
      const sending = this.#sendAfter(this.#sending, progress, followers).finally(() => {
        if (this.#sending === sending) this.#sending = undefined;
      });
      this.#sending = sending;
    } catch (error) {
      // A store may throw before it returns a promise.
      this.#options.onError(Fault.from(error));
    }
  }

  /**
   * Sends the pending messages and resolves when they are sent. Returns `undefined` if there is nothing to wait
   * for.
   */
  whenSent(): Promise<void> | undefined {
    this.writeIdle();
    return this.#sending;
  }

  #followers(): MaybePromise<readonly AgentId[]> {
    return this.#options.store.topics.followers(this.#topicId);
  }

  async #sendAfter(
    earlier: Promise<void> | undefined,
    progress: readonly Event[],
    followers: MaybePromise<readonly AgentId[]> | undefined,
  ): Promise<void> {
    await earlier;
    try {
      await this.#send(progress, await (followers ?? this.#followers()));
    } catch (error) {
      this.#options.onError(Fault.from(error));
    }
  }

  async #send(progress: readonly Event[], followers: readonly AgentId[]): Promise<void> {
    for (const follower of followers) {
      if (!this.#caughtUp.has(follower)) await this.#catchUp(follower, progress[0]?.seq ?? 0);
      this.#caughtUp.add(follower);
      for (const event of progress) await this.#deliver(follower, event);
    }
  }

  async #catchUp(follower: AgentId, before: number): Promise<void> {
    const { store, runId } = this.#options;
    for await (const event of store.events.read(runId)) {
      if (event.seq >= before) return;
      if (progressTypes.has(event.type)) await this.#deliver(follower, event);
    }
  }

  async #deliver(to: AgentId, { seq, type, taskId, agentId, at, data }: Event): Promise<void> {
    const { store, runId, sender } = this.#options;
    const body = { seq, type, taskId, agentId, at, data } as unknown as JsonValue;
    const id = `progress ${runId}/${seq} ${to}`;
    await store.inbox.deliver({ id, from: agentId, to, body, sentAt: at, sender: sender() });
  }
}

import type { AgentId, TopicId } from "../base/identity.ts";
import type { MaybePromise } from "../base/maybe-promise.ts";

/** A change to the followers of a topic, which a run's commit applies. */
export interface TopicChange {
  readonly type: "follow" | "unfollow";
  readonly topicId: TopicId;
  readonly agentId: AgentId;
}

/**
 * The followers of topics. Every store passes `topicContract`, which checks:
 *
 * - Q1 Following twice has the effect of following once. Unfollowing a topic that is not followed has no effect.
 * - Q2 Followers are listed in the order in which they started to follow.
 */
export interface Topics {
  apply(changes: readonly TopicChange[]): Promise<void>;
  /** Synchronous if the store can read synchronously: every run asks for the followers of its progress. */
  followers(topicId: TopicId): MaybePromise<readonly AgentId[]>;
}

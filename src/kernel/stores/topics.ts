import type { AgentId, TopicId } from "../base/identity.ts";

/** A change that rides in a run's commit. */
export interface TopicChange {
  readonly type: "follow" | "unfollow";
  readonly topicId: TopicId;
  readonly agentId: AgentId;
}

/**
 * Who follows what. Every store passes `topicContract`, which checks:
 *
 * - Q1 Following twice is following once; unfollowing what is not followed is nothing.
 * - Q2 Followers are listed in the order in which they began to follow.
 */
export interface Topics {
  apply(changes: readonly TopicChange[]): Promise<void>;
  followers(topicId: TopicId): Promise<readonly AgentId[]>;
}

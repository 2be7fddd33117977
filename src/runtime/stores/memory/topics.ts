import type { AgentId, TopicChange, TopicId, Topics } from "../../../kernel/index.ts";

export class MemoryTopics implements Topics {
  readonly #followers = new Map<TopicId, Set<AgentId>>();

  async apply(changes: readonly TopicChange[]): Promise<void> {
    this.applyNow(changes);
  }

  followers(topicId: TopicId): readonly AgentId[] {
    return [...(this.#followers.get(topicId) ?? [])];
  }

  /** Applies the topic changes of a commit. The journal calls this together with the other changes of the commit. */
  applyNow(changes: readonly TopicChange[]): void {
    for (const { type, topicId, agentId } of changes) {
      const followers = this.#followers.get(topicId) ?? new Set();
      if (type === "follow") followers.add(agentId);
      else followers.delete(agentId);
      this.#followers.set(topicId, followers);
    }
  }
}

import type { AgentId, MaybePromise, TopicChange, TopicId, Topics } from "../../../kernel/index.ts";
import type { Tables } from "./db/tables.ts";

export class SqliteTopics implements Topics {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  apply(changes: readonly TopicChange[]): Promise<void> {
    return this.#tables.write({ apply: () => this.applyNow(changes) });
  }

  followers(topicId: TopicId): MaybePromise<readonly AgentId[]> {
    return this.#tables.read(() =>
      this.#tables.database
        .all<{ readonly agentId: AgentId }>(
          "SELECT agent_id AS agentId FROM followers WHERE topic_id = ? ORDER BY id",
          topicId,
        )
        .map(({ agentId }) => agentId),
    );
  }

  /** Applies the topic changes of a commit, inside its transaction. */
  applyNow(changes: readonly TopicChange[]): void {
    for (const { type, topicId, agentId } of changes) {
      this.#tables.database.run(
        type === "follow"
          ? "INSERT OR IGNORE INTO followers (topic_id, agent_id) VALUES (?, ?)"
          : "DELETE FROM followers WHERE topic_id = ? AND agent_id = ?",
        topicId,
        agentId,
      );
    }
  }
}

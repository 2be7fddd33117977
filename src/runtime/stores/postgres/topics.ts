import type { AgentId, TopicChange, TopicId, Topics } from "../../../kernel/index.ts";
import type { Queries } from "./db/queries.ts";
import type { Tables } from "./db/tables.ts";

const follow = "INSERT INTO {followers} (topic_id, agent_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const unfollow = "DELETE FROM {followers} WHERE topic_id = $1 AND agent_id = $2";
const listFollowers = `SELECT agent_id AS "agentId" FROM {followers} WHERE topic_id = $1 ORDER BY id`;

export class PostgresTopics implements Topics {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  apply(changes: readonly TopicChange[]): Promise<void> {
    return this.#tables.database.write((transaction) => this.applyNow(transaction, changes));
  }

  async followers(topicId: TopicId): Promise<readonly AgentId[]> {
    const rows = await this.#tables.database.statements.all<{ readonly agentId: AgentId }>(
      listFollowers,
      topicId,
    );
    return rows.map(({ agentId }) => agentId);
  }

  /** Applies the topic changes of a commit, inside its transaction. */
  async applyNow(queries: Queries, changes: readonly TopicChange[]): Promise<void> {
    for (const { type, topicId, agentId } of changes)
      await queries.run(type === "follow" ? follow : unfollow, topicId, agentId);
  }
}

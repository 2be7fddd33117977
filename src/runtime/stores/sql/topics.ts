import type { AgentId, MaybePromise, TopicChange, TopicId, Topics } from "../../../kernel/index.ts";
import type { SqlTables } from "./tables.ts";
import { all, run, type Work } from "./work.ts";

const follow = "INSERT INTO {followers} (topic_id, agent_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const unfollow = "DELETE FROM {followers} WHERE topic_id = $1 AND agent_id = $2";
const listFollowers = `SELECT agent_id AS "agentId" FROM {followers} WHERE topic_id = $1 ORDER BY id`;

export class SqlTopics implements Topics {
  readonly #tables: SqlTables;

  constructor(tables: SqlTables) {
    this.#tables = tables;
  }

  apply(changes: readonly TopicChange[]): Promise<void> {
    return this.#tables.transact(() => changeTopics(changes));
  }

  followers(topicId: TopicId): MaybePromise<readonly AgentId[]> {
    return this.#tables.query(() => followersOf(topicId));
  }
}

/** Applies topic changes, inside a transaction. */
export function* changeTopics(changes: readonly TopicChange[]): Work<void> {
  for (const { type, topicId, agentId } of changes)
    yield* run(type === "follow" ? follow : unfollow, topicId, agentId);
}

function* followersOf(topicId: TopicId): Work<readonly AgentId[]> {
  const rows = yield* all<{ readonly agentId: AgentId }>(listFollowers, topicId);
  return rows.map(({ agentId }) => agentId);
}

import { formatAgentId, formatTopicId } from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";

/** What every `Topics` must do. */
export function topicContract({ test, expect, open }: ContractHarness): void {
  const topicId = formatTopicId({ type: "news", source: "eu" });
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];

  test("Q1: following twice is following once, and one may unfollow what one does not follow", async () => {
    const { topics } = await open();
    await topics.apply([
      { type: "follow", topicId, agentId: ann },
      { type: "follow", topicId, agentId: ann },
      { type: "unfollow", topicId, agentId: bob },
    ]);
    expect(await topics.followers(topicId)).toEqual([ann]);
    await topics.apply([{ type: "unfollow", topicId, agentId: ann }]);
    expect(await topics.followers(topicId)).toEqual([]);
  });

  test("Q2: followers come in the order in which they began to follow, each topic its own", async () => {
    const { topics } = await open();
    await topics.apply([
      { type: "follow", topicId, agentId: bob },
      { type: "follow", topicId, agentId: ann },
    ]);
    expect(await topics.followers(topicId)).toEqual([bob, ann]);
    expect(await topics.followers(formatTopicId({ type: "news", source: "us" }))).toEqual([]);
  });
}

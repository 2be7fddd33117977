import { formatAgentId, formatTopicId } from "../kernel/index.ts";
import type { ContractHarness } from "./contract-harness.ts";

/** Tests of the rules that every implementation of `Topics` must keep. */
export function topicContract({ test, expect, open }: ContractHarness): void {
  const topicId = formatTopicId({ type: "news", source: "eu" });
  const [ann, bob] = [formatAgentId({ name: "ann" }), formatAgentId({ name: "bob" })];

  test("Q1: following a topic twice counts once, and unfollowing a topic that is not followed has no effect", async () => {
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

  test("Q2: the followers of each topic are listed in the order in which they began to follow it", async () => {
    const { topics } = await open();
    await topics.apply([
      { type: "follow", topicId, agentId: bob },
      { type: "follow", topicId, agentId: ann },
    ]);
    expect(await topics.followers(topicId)).toEqual([bob, ann]);
    expect(await topics.followers(formatTopicId({ type: "news", source: "us" }))).toEqual([]);
  });
}

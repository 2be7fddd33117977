import assert from "node:assert/strict";
import fc from "fast-check";
import { agentId } from "../../../src/testing/contracts/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

const moves = fc.array(
  fc.record({
    type: fc.constantFrom("deliver" as const, "ack" as const, "nack" as const),
    id: fc.integer({ min: 0, max: 4 }),
  }),
  { maxLength: 14 },
);

/** I1-I4: a message is delivered once by id, in order, and kept until it is acknowledged. After `maxDeliveries` it is a dead letter. */
export const inboxModel: Model = (open) =>
  onStore(moves, open, async ({ inbox }, sequence) => {
    const { maxDeliveries } = inbox.settings;
    const seen = new Set<string>();
    let waiting: { id: string; deliveries: number }[] = [];
    const dead: string[] = [];
    for (const { type, id: number } of sequence) {
      const id = `m${number}`;
      if (type === "deliver") {
        assert.equal(
          await inbox.deliver({ id, from: null, to: agentId, body: null, sentAt: 0 }),
          !seen.has(id),
        );
        if (!seen.has(id)) waiting.push({ id, deliveries: 0 });
        seen.add(id);
      } else if (type === "ack") {
        await inbox.ack(agentId, [id]);
        waiting = waiting.filter((each) => each.id !== id);
      } else {
        await inbox.nack(agentId, [id]);
        for (const each of waiting) if (each.id === id) each.deliveries++;
        dead.push(...waiting.filter(({ deliveries }) => deliveries >= maxDeliveries).map((each) => each.id));
        waiting = waiting.filter(({ deliveries }) => deliveries < maxDeliveries);
      }
      const peeked = (await inbox.peek(agentId)).map(({ message, deliveries }) => ({
        id: message.id,
        deliveries,
      }));
      assert.deepEqual(peeked, waiting);
    }
    assert.deepEqual(
      (await inbox.deadLetters(agentId)).map(({ message }) => message.id),
      dead,
    );
  });

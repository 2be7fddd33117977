import assert from "node:assert/strict";
import fc from "fast-check";
import type { Mail } from "../../../src/kernel/index.ts";
import { ownRun } from "../../../src/testing/contracts/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

const moves = fc.array(
  fc.oneof(
    fc.record({ type: fc.constant("put" as const), id: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ type: fc.constant("consume" as const), count: fc.integer({ min: 1, max: 3 }) }),
  ),
  { maxLength: 12 },
);

/** P1, P2, P3: a mailbox message is kept once by id, in the order of arrival, until a commit consumes it. */
export const mailboxModel: Model = (open) =>
  onStore(moves, open, async (store, sequence) => {
    const lease = await ownRun(store);
    const { runId } = lease;
    const arrived: string[] = [];
    let consumed = 0;
    let number = 1;
    for (const move of sequence) {
      if (move.type === "put") {
        const id = `m${move.id}`;
        const mail: Mail = { id, runId, from: "me", at: 0, body: { type: "pause" } };
        assert.equal(await store.mailbox.put(mail), !arrived.includes(id));
        if (!arrived.includes(id)) arrived.push(id);
      } else {
        consumed = Math.min(arrived.length, consumed + move.count);
        if (consumed > 0)
          await store.journal.append(lease, { number: number++, at: 0, mailThrough: consumed - 1 });
      }
      const unread = await store.mailbox.read(runId);
      assert.deepEqual(
        unread.map(({ id, place }) => [id, place]),
        arrived.map((id, place) => [id, place]).slice(consumed),
      );
    }
  });

import assert from "node:assert/strict";
import fc from "fast-check";
import type { Lease, Rest } from "../../../src/kernel/index.ts";
import { createRun } from "../../../src/testing/contracts/store-fixtures.ts";
import { onStore, type Model } from "./store-model.ts";

const workers = ["w0", "w1"] as const;
const rests: readonly Rest[] = [
  { kind: "ready" },
  { kind: "suspended", wakeAt: null },
  { kind: "suspended", wakeAt: 5 },
  { kind: "ended" },
];
const moves = fc.array(
  fc.oneof(
    fc.record({
      type: fc.constantFrom(
        "claim" as const,
        "seize" as const,
        "dismiss" as const,
        "enlist" as const,
        "write" as const,
      ),
      worker: fc.integer({ min: 0, max: 1 }),
    }),
    fc.record({
      type: fc.constant("release" as const),
      worker: fc.integer({ min: 0, max: 1 }),
      rest: fc.constantFrom(...rests),
    }),
    fc.constant({ type: "mail" as const, worker: 0 }),
    fc.constant({ type: "later" as const, worker: 0 }),
  ),
  { maxLength: 14 },
);

/** The expected ownership of one run, which the model predicts. */
interface Oracle {
  owner: string | null;
  rest: Rest;
  mail: number;
  now: number;
  readonly alive: Set<string>;
}

function isReady({ owner, rest, mail, now, alive }: Oracle): boolean {
  if (owner !== null) return !alive.has(owner);
  if (rest.kind === "ready" || mail > 0) return true;
  return rest.kind === "suspended" && rest.wakeAt !== null && rest.wakeAt <= now;
}

/** L1-L4, J3: a run has one owner at a time, is claimed only if it has work, and its previous owner cannot write. */
export const ownershipModel: Model = (open) =>
  onStore(moves, open, async (store, sequence) => {
    const runId = await createRun(store);
    const oracle: Oracle = { owner: null, rest: { kind: "ready" }, mail: 0, now: 0, alive: new Set() };
    const held = new Map<string, Lease>();
    let holder: Lease | undefined;
    let number = 1;
    for (const [index, move] of sequence.entries()) {
      const workerId = workers[move.worker] ?? "w0";
      const lease = held.get(workerId);
      const holds = lease !== undefined && lease === holder;
      switch (move.type) {
        case "enlist":
          await store.leases.enlist(workerId);
          if (oracle.owner === workerId && !oracle.alive.has(workerId)) {
            [oracle.owner, oracle.rest, holder] = [null, { kind: "ready" }, undefined];
          }
          oracle.alive.add(workerId);
          break;
        case "dismiss":
          await store.leases.dismiss(workerId);
          oracle.alive.delete(workerId);
          break;
        case "claim": {
          const [claimed] = await store.leases.claim({ workerId, limit: 1, now: oracle.now });
          assert.equal(claimed !== undefined, isReady(oracle));
          if (claimed === undefined) break;
          held.set(workerId, claimed);
          [holder, oracle.owner, oracle.rest] = [claimed, workerId, { kind: "ready" }];
          break;
        }
        case "seize": {
          const seized = await store.leases.seize(runId, workerId);
          assert.equal(seized !== undefined, oracle.rest.kind !== "ended" || oracle.mail > 0);
          if (seized === undefined) break;
          held.set(workerId, seized);
          [holder, oracle.owner, oracle.rest] = [seized, workerId, { kind: "ready" }];
          break;
        }
        case "write": {
          if (lease === undefined) break;
          const written = await Promise.resolve(store.journal.append(lease, { number, at: 0 })).then(
            () => true,
            () => false,
          );
          assert.equal(written, holds);
          if (written) number++;
          break;
        }
        case "release": {
          if (lease === undefined) break;
          const released = await Promise.resolve(store.leases.release(lease, move.rest)).then(
            () => true,
            () => false,
          );
          assert.equal(released, holds);
          if (!released) break;
          holder = undefined;
          oracle.owner = null;
          oracle.rest = move.rest;
          break;
        }
        case "mail":
          await store.mailbox.put({ id: `${index}`, runId, from: "me", at: 0, body: { type: "pause" } });
          oracle.mail++;
          break;
        case "later":
          oracle.now += 3;
          break;
      }
    }
  });

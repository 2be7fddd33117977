import type { Ledger } from "../../../src/kernel/index.ts";

const units = ["tokens", "nanoUsd", "turns"] as const;

/**
 * Returns the promises that a state of the ledger breaks: caps (B1 and B6), that no call waits without an open
 * reservation, and that spending never decreases.
 */
export function brokenPromises(before: Ledger, after: Ledger, overran: boolean): readonly string[] {
  const [accounts, holds] = [Object.values(after.accounts), after.open];
  const broken =
    after.waiting.length > 0 && holds.length === 0 ? ["a call waits although no reservation is open"] : [];
  for (const { taskId, caps, spent, lost, reserved } of accounts) {
    const earlier = before.accounts[taskId];
    const below = accounts.filter(({ parentId }) => parentId === taskId).map((each) => each.reserved);
    const parts = [...below, ...holds.filter((hold) => hold.taskId === taskId).map(({ held }) => held)];
    for (const unit of units) {
      const room = (overran ? null : caps[unit]) ?? Number.POSITIVE_INFINITY;
      if (spent[unit] + reserved[unit] > room) broken.push(`${taskId} is above its cap`);
      const held = parts.reduce((sum, part) => sum + part[unit], 0);
      if (reserved[unit] !== held)
        broken.push(`${taskId}: its reserved amount differs from the holds below it`);
      // Only the charge of an unreported call may be lowered (B3).
      if (earlier && spent[unit] - lost[unit] < earlier.spent[unit] - earlier.lost[unit])
        broken.push(`${taskId} forgot spend`);
    }
  }
  return broken;
}

/** Deep equality that ignores the order of object keys. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const [mine, theirs] = [Object.entries(one), other as Readonly<Record<string, unknown>>];
  return mine.length === Object.keys(other).length && mine.every(([key, value]) => same(value, theirs[key]));
}

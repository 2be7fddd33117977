import type { Ledger } from "../../../src/kernel/index.ts";

const units = ["tokens", "nanoUsd", "turns"] as const;

/** What can be read off a state: B1, B6, that nobody waits for nothing and that no spend is forgotten. */
export function brokenPromises(before: Ledger, after: Ledger, overran: boolean): readonly string[] {
  const [accounts, holds] = [Object.values(after.accounts), after.open];
  const broken = after.waiting.length > 0 && holds.length === 0 ? ["somebody waits and nothing is open"] : [];
  for (const { taskId, caps, spent, reserved } of accounts) {
    const below = accounts.filter(({ parentId }) => parentId === taskId).map((each) => each.reserved);
    const parts = [...below, ...holds.filter((hold) => hold.taskId === taskId).map(({ held }) => held)];
    for (const unit of units) {
      const room = (overran ? null : caps[unit]) ?? Number.POSITIVE_INFINITY;
      if (spent[unit] + reserved[unit] > room) broken.push(`${taskId} is above its cap`);
      const held = parts.reduce((sum, part) => sum + part[unit], 0);
      if (reserved[unit] !== held) broken.push(`${taskId} reserved something else than is open below it`);
      if (spent[unit] < (before.accounts[taskId]?.spent[unit] ?? 0)) broken.push(`${taskId} forgot spend`);
    }
  }
  return broken;
}

/** Equal, whatever the order of members. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  const [mine, theirs] = [Object.entries(one), other as Readonly<Record<string, unknown>>];
  return mine.length === Object.keys(other).length && mine.every(([key, value]) => same(value, theirs[key]));
}

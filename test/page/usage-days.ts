import { addDays, utcDay, utcHourOfDay, type Store } from "../../src/kernel/index.ts";
import { delta, spend } from "../../src/testing/contracts/usage-fixtures.ts";

/** Names as an attacker would choose them: markup, a text that runs from right to left, and a terminal's escape. */
export const hostile = "<img src=x onerror=alert(1)>\u202Egnp.\u001B[31m";

/** The models of the seeded usage, the dearest first. */
export const models = ["anthropic/claude-sonnet-5", "openai/gpt-5.2", `acme/${hostile}`] as const;

interface Whose {
  readonly tenantId: string | null;
  readonly userId: string | null;
}

const owners: readonly Whose[] = [
  { tenantId: "acme", userId: "ann" },
  { tenantId: "beta", userId: "ann" },
  { tenantId: null, userId: hostile },
];

/** Stores usage for 28 days that end today: less in the first 14 days, and 4 failures 3 days ago. */
export async function seedUsage(store: Store, now = Date.now()): Promise<void> {
  const today = utcDay(now);
  for (const [place, owner] of owners.entries()) {
    const model = models[place] ?? null;
    const usage = Array.from({ length: 28 }, (_each, ago) => {
      const isLate = ago < 14;
      const calls = (isLate ? 30 : 20) - (ago % 7 === 2 || ago % 7 === 3 ? 12 : 0);
      return delta({
        day: addDays(today, -ago),
        hour: ago === 0 ? utcHourOfDay(now) : 9,
        agent: place === 2 ? hostile : "lead",
        model,
        turns: calls,
        runs: 6 - place,
        inputTokens: calls * 900 * (3 - place),
        cachedTokens: calls * (isLate ? 600 : 450) * (3 - place),
        outputTokens: calls * 120,
        nanoUsd: calls * 0.11e9 * (3 - place),
        failedRuns: ago === 3 && place === 0 ? 4 : 0,
        failedCalls: place,
        latency: { b9: calls - 4, b12: 3, b14: 1 },
      });
    });
    await spend(store, `usage${place}`, usage, owner);
  }
}

import { expect, inject, test } from "vitest";
import { crashServer } from "../crash/crash-store.ts";
import { budgetProblems, exactMoney, requestPoints } from "../crash/gateway-kills.ts";
import { isFull } from "../effort.ts";

process.env[crashServer] = inject("postgresUrl");

test("PostgreSQL, B1, B3: a gateway program whose process is killed around its writes is billed at most its cap", async () => {
  expect(await budgetProblems(1)).toEqual([]);
});

// In `npm test` the next two run on SQLite.
test.runIf(isFull)(
  "PostgreSQL, B7: a gateway program under several caps whose process is killed is billed at most the tightest cap",
  async () => {
    expect(await budgetProblems(1, { isCapped: true })).toEqual([]);
  },
);

test.runIf(isFull)(
  "PostgreSQL, B1, B3: a gateway request whose process is killed at any point is paid at most once and is never lost",
  async () => {
    expect(await requestPoints()).toEqual(exactMoney);
  },
);

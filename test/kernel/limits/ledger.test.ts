import fc from "fast-check";
import { expect, test } from "vitest";
import {
  deepFreeze,
  executionBudget,
  formatAgentId,
  formatTaskId,
  fromNanoUsd,
  openLedger,
  priorities,
  Priority,
  stepLedger,
  tightenBudget,
  toNanoUsd,
  toNanoUsdLimit,
  type Account,
  type ExecutionBudget,
  type Ledger,
  type LedgerCommand,
  type LedgerOutcome,
  type UnknownPrice,
} from "../../../src/kernel/index.ts";
import * as given from "./ledger-commands.ts";
import { brokenPromises } from "./money-promises.ts";
import { propertyRuns } from "../../effort.ts";

const { charge, close, crash, lose, open, rank, refund, reserve, settle, topUp, withdraw } = given;
const { BACKGROUND, LOW, NORMAL, HIGH, CRITICAL } = Priority;
const unchanged = { applied: false, decisions: [], warnings: [], overrun: null };
const spend = (tokens: number, nanoUsd = 0, turns = 0) => ({ tokens, nanoUsd, turns });

/** Opens a ledger with account `t0`. Every state is frozen before the next step. */
function setup(root: Partial<ExecutionBudget> = {}, unknownPrice: UnknownPrice = "refuse") {
  const book = {
    state: openLedger(unknownPrice),
    /** Applies the commands and returns the outcome of the last one. */
    step: (...all: readonly LedgerCommand[]): LedgerOutcome => {
      let outcome: LedgerOutcome = unchanged;
      for (const command of all)
        ({ state: book.state, outcome } = stepLedger(deepFreeze(book.state), deepFreeze(command)));
      return outcome;
    },
    /**
     * Applies the commands and returns the decisions of the last one as text: `a` is granted, `a:3` is granted with
     * output clamped to 3, `no a` is refused.
     */
    decided: (...all: readonly LedgerCommand[]): string => {
      const words = book.step(...all).decisions.map((each) => {
        if (each.kind !== "granted") return `no ${each.id}`;
        return each.clamped ? `${each.id}:${each.outputTokens}` : each.id;
      });
      return words.join(", ");
    },
    account: (task: number): Account | undefined => book.state.accounts[formatTaskId(task)],
  };
  book.step(open(0, { ...root, parent: null }));
  return book;
}

test("B2: a cap of null in the ledger is unlimited", () => {
  const { decided } = setup();
  expect(decided(reserve("a", { input: 1e9, output: 1e9, costUsd: 1e6, turns: 1e9 }))).toBe("a");
});

test.each([
  [{ maxTokens: 0 }, { dimension: "tokens", used: 1 }],
  [{ maxCostUsd: 0 }, { dimension: "costUsd", used: 0.25 }],
  [{ maxTurns: 0 }, { dimension: "turns", used: 1 }],
])("B2: a cap of zero in the ledger grants nothing, also to a child: %j", (budget, found) => {
  const handed = [tightenBudget(executionBudget(budget), {}), tightenBudget(executionBudget(), budget)];
  for (const own of handed) {
    const { decisions } = setup().step(open(1, own), reserve("a", { task: 1, usdPerToken: 0.25 }));
    const refused = { reserved: found.used, remaining: 0, spent: 0, unreported: 0 };
    const exhaustion = { taskId: "t1", limit: 0, ...found, refused };
    expect(decisions).toEqual([{ id: "a", kind: "exhausted", exhaustion }]);
  }
});

test.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 0.5])(
  "B2: the ledger refuses the invalid amount %d",
  (bad) => {
    const { step } = setup();
    step(reserve("a"));
    const counts = [
      ...["input", "output", "min", "turns"].map((key) => () => reserve("b", { costUsd: null, [key]: bad })),
      ...["maxTokens", "maxTurns"].map((key) => () => open(1, { [key]: bad })),
      ...["maxTokens", "maxTurns"].map((key) => () => topUp(0, { [key]: bad })),
      () => settle("a", bad),
      () => charge(0, bad),
      () => charge(0, 1, 0, bad),
    ];
    const dollars = [
      ...["costUsd", "usdPerToken"].map(
        (key) => () => reserve("b", { costUsd: 5, usdPerToken: 5, [key]: bad }),
      ),
      () => settle("a", 1, bad),
      () => charge(0, 1, bad),
      () => open(1, { maxCostUsd: bad }),
      () => topUp(0, { maxCostUsd: bad }),
    ];
    const refused = expect.objectContaining({ code: "invalid_argument" });
    for (const command of bad === 0.5 ? counts : [...counts, ...dollars])
      expect(() => step(command())).toThrow(refused);
  },
);

test("B6: what a child has spent, reserved and lost counts against every ancestor in the ledger", () => {
  const { step, account } = setup();
  step(open(1), open(2, { parent: 1 }), open(3), reserve("a", { task: 2, input: 5, costUsd: 1 }));
  step(settle("a", 4, 0.5), reserve("b", { task: 2, output: 6 }), lose("b"), reserve("c", { task: 2 }));
  const amounts = { spent: spend(10, 5e8, 1), lost: spend(6), reserved: spend(1, 0, 1) };
  for (const task of [0, 1, 2]) expect(account(task)).toMatchObject(amounts);
  expect(account(3)).toMatchObject({ spent: spend(0), reserved: spend(0) });
});

test("B6: an ended task stays in the ledger with its caps while it has children, and is removed with the last child", () => {
  const { step, decided, account } = setup();
  step(open(1, { maxTokens: 4 }), open(2, { parent: 1 }), charge(2, 3), close(1));
  expect(step(reserve("a", { task: 1 }))).toEqual(unchanged);
  expect(decided(reserve("a", { task: 2, output: 9 }))).toBe("a:1");
  expect(step(close(2))).toEqual(unchanged);
  step(refund("a"), close(2));
  expect([account(1), account(2)]).toEqual([undefined, undefined]);
  expect(account(0)).toMatchObject({ children: 0, spent: spend(3) });
});

test("B1: the ledger grants nothing that exceeds a cap in any dimension", () => {
  const { step, account } = setup({ maxTokens: 10, maxCostUsd: 3, maxTurns: 3 });
  step(reserve("a", { output: 6, costUsd: 1 }), reserve("b", { output: 6 }), withdraw("b"));
  step(reserve("c", { costUsd: 2.5 }), withdraw("c"), reserve("d", { turns: 3 }), withdraw("d"));
  expect(account(0)?.reserved).toEqual(spend(6, 1e9, 1));
  step(reserve("e", { output: 4, costUsd: 2, turns: 2 }));
  expect(account(0)?.reserved).toEqual(spend(10, 3e9, 3));
});

test("B1: a reservation waits while another reservation is open, and is granted when that other one settles below its bound", () => {
  const { decided } = setup({ maxTokens: 10 });
  expect(decided(reserve("a", { output: 8 }), reserve("b", { output: 5 }))).toBe("");
  expect(decided(settle("a", 5))).toBe("b");
});

test("B1: a reservation fails when no open reservation can make room for it", () => {
  const { step, decided } = setup({ maxTokens: 10 });
  expect(decided(reserve("a", { input: 10 }))).toBe("no a");
  step(reserve("b", { output: 5 }), reserve("c", { output: 2 }), reserve("d", { output: 6, min: 6 }));
  expect(decided(settle("b", 5))).toBe("no d");
});

test("B1: a call's output limit is lowered to the tokens and dollars that the tightest budget leaves", () => {
  const { step, decided } = setup({ maxTokens: 10, maxCostUsd: 1 });
  expect(decided(reserve("a", { input: 4, output: 100 }))).toBe("a:6");
  step(refund("a"), open(1, { maxCostUsd: 5 }), charge(0, 0, 0.3));
  expect(decided(reserve("b", { task: 1, output: 100, costUsd: 0.1, usdPerToken: 0.25 }))).toBe("b:2");
});

test("B1: a reservation waits for the room that open calls hold, instead of being lowered to what they leave", () => {
  const { decided } = setup({ maxTokens: 10 });
  expect(decided(reserve("a", { output: 8 }), reserve("b", { output: 20 }))).toBe("");
  expect(decided(settle("a", 1))).toBe("b:9");
});

test("B1: a call needs at least one output token and takes one turn by default; a retry takes no turn", () => {
  const { decided, account } = setup({ maxTokens: 10, maxTurns: 1 });
  const { turns: _turns, ...call } = reserve("a", { input: 9 });
  expect(decided({ ...call, output: { maxTokens: 5, usdPerToken: 0 } })).toBe("a:1");
  expect(account(0)?.reserved).toEqual(spend(10, 0, 1));
  expect(decided(settle("a", 3), reserve("a", { attempt: 2, turns: 0 }))).toBe("a");
  expect(decided(reserve("b"))).toBe("no b");
  expect(decided(reserve("c", { output: 8, min: 8, turns: 0 }))).toBe("no c");
});

test("B3: an unreported call is charged its tokens and dollars, a refunded call nothing, and one of unknown cost its bound", () => {
  const { step, account } = setup();
  const call = { input: 2, output: 3, usdPerToken: 0.5 };
  step(
    reserve("a", call),
    lose("a"),
    reserve("b", call),
    refund("b"),
    reserve("c", call),
    settle("c", 1, null),
  );
  expect(account(0)).toMatchObject({ spent: spend(6, 30e8, 1), lost: spend(5, 15e8), reserved: spend(0) });
});

test("B3: a reservation can be settled once, and a ledger command with an unknown id changes nothing", () => {
  const book = setup({ maxTokens: 3 });
  book.step(reserve("a", { output: 2 }), settle("a", 1), reserve("b", { output: 2 }), reserve("c"));
  const before = book.state;
  const ended = [settle("a", 1), lose("a"), refund("a"), withdraw("a"), withdraw("b"), settle("c", 1)];
  const missing = [charge(9, 1), topUp(9, {}), rank(9, LOW), close(9), reserve("d", { task: 9 })];
  const taken = [reserve("b"), reserve("c"), open(0), open(1, { parent: 9 }), close(0)];
  for (const command of [...ended, ...missing, ...taken]) expect(book.step(command)).toEqual(unchanged);
  expect(book.state).toBe(before);
});

test.each(["constructor", "__proto__", "7"])("B3: a reservation may have any id, such as %s", (id) => {
  const { step, decided, account } = setup();
  for (const command of [settle(id, 1), lose(id), withdraw(id)]) expect(step(command)).toEqual(unchanged);
  expect(decided(reserve(id))).toBe(id);
  expect(step(settle(id, 1)).applied).toBe(true);
  expect(account(0)).toMatchObject({ spent: spend(1, 0, 1), reserved: spend(0) });
});

test("B3: a crash charges every open reservation as lost, with its attempt, and drops every waiting reservation", () => {
  const book = setup({ maxTokens: 9 });
  book.step(reserve("a", { output: 4 }), reserve("b", { output: 5, attempt: 3 }), reserve("c"));
  expect(book.state.open.map(({ id, attempt }) => `${id} ${attempt}`)).toEqual(["a 1", "b 3"]);
  const { open: holds, waiting, passes } = (book.step(crash), book.state);
  expect([holds, waiting, passes]).toEqual([[], [], {}]);
  expect(book.account(0)).toMatchObject({ spent: spend(9), lost: spend(9) });
});

test("B3: the spending after a crash equals that of a run without the crash plus the lost amount", () => {
  const [plain, crashed] = [setup(), setup()];
  const [a, b] = [reserve("a", { output: 9, usdPerToken: 0.5 }), reserve("b", { output: 3 })];
  plain.step(a, settle("a", 7, 2), b, settle("b", 2));
  crashed.step(a, crash, a, settle("a", 7, 2), b, crash, b, settle("b", 2));
  expect(plain.account(0)?.spent).toEqual(spend(9, 2e9, 2));
  expect(crashed.account(0)).toMatchObject({ spent: spend(21, 65e8, 2), lost: spend(12, 45e8) });
});

test.each([
  [settle("a", 6, 1), { dimension: "tokens", limit: 5, used: 6 }],
  [settle("a", 5, 1.5), { dimension: "costUsd", limit: 1.25, used: 1.5 }],
])("B1: a bill above its bound is recorded and stops all grants until topUp: %j", (command, found) => {
  const book = setup({ maxTokens: 8, maxCostUsd: 9 });
  book.step(open(1), reserve("a", { output: 5, usdPerToken: 0.25 }), reserve("b", { output: 4 }));
  expect(book.decided(command)).toBe("no b");
  expect(book.state.overrun).toEqual({ taskId: "t0", reservationId: "a", ...found });
  expect(book.decided(reserve("c", { task: 1 }))).toBe("no c");
  expect(book.decided(topUp(0, { maxTokens: 1 }), reserve("d"))).toBe("d");
});

test.each([
  [charge(1, 6, 2, 1), { taskId: "t1", dimension: "tokens", limit: 5, used: 6 }],
  [charge(1, 5, 2.5, 3), { taskId: "t0", dimension: "costUsd", limit: 2, used: 2.5 }],
  [charge(1, 5, 2, 2), { taskId: "t0", dimension: "turns", limit: 2, used: 3 }],
  [charge(1, 5, 2, 1), null],
])(
  "B1: a charge that exceeds a cap together with the open reservations is an overrun: %j",
  (command, found) => {
    const { step } = setup({ maxCostUsd: 2, maxTurns: 2 });
    const { overrun } = step(open(1, { maxTokens: 5 }), reserve("a"), command);
    expect(overrun).toEqual(found && { ...found, reservationId: null });
  },
);

test("B1: a call without a known price is an overrun if it exceeds a budget in dollars; a call within its bound is not", () => {
  const { step, decided } = setup({ maxCostUsd: 1 }, "ignore");
  step(...["a", "b", "c"].map((id) => reserve(id, { costUsd: null })));
  expect(step(settle("a", 1, 1)).overrun).toBeNull();
  const overrun = { taskId: "t0", dimension: "costUsd", limit: 1, used: 1.5, reservationId: "b" };
  expect(step(settle("b", 1, 0.5)).overrun).toEqual(overrun);
  expect(decided(reserve("d"))).toBe("no d");
  expect(step(topUp(0, {}), settle("c", 1, null)).overrun).toBeNull();
});

test.each([{ costUsd: null }, { usdPerToken: null }])(
  "B4: a call without a price is refused under a budget in dollars: %j",
  (price) => {
    const { step } = setup({ maxCostUsd: 100 });
    const decision = { id: "a", kind: "unknown_price", taskId: "t0" };
    expect(step(open(1), reserve("a", { task: 1, ...price })).decisions).toEqual([decision]);
  },
);

test("B4: a call without a price is granted without a budget in dollars or if configured so, and is counted as unpriced", () => {
  for (const { step, decided, account } of [setup(), setup({ maxCostUsd: 1 }, "ignore")]) {
    const call = { costUsd: null, output: 5 };
    expect(decided(reserve("a", call))).toBe("a");
    step(settle("a", 5, null), reserve("b", call), lose("b"), reserve("c", call), crash);
    step(reserve("d", call), refund("d"), charge(0, 1, null));
    expect(account(0)).toMatchObject({ spent: { nanoUsd: 0, tokens: 16 }, unpriced: 4 });
    step(reserve("e", call), settle("e", 5, 0.5));
    expect(account(0)).toMatchObject({ spent: { nanoUsd: 5e8, tokens: 21 }, unpriced: 4 });
  }
});

test("B1: the ledger adds dollars exactly: 0.1 + 0.2 fits a cap of 0.3", () => {
  const { step, decided, account } = setup({ maxCostUsd: 0.3 });
  expect(decided(reserve("a", { costUsd: 0.1 }), reserve("b", { costUsd: 0.2 }))).toBe("b");
  step(settle("a", 1, 0.1), settle("b", 1, 0.2));
  expect(account(0)).toMatchObject({ spent: { nanoUsd: 3e8 }, caps: { nanoUsd: 3e8 } });
});

test("B1: the ledger rounds fractions of a nano-dollar up when spent, and down in a cap and its top-up", () => {
  const { step, account } = setup({ maxCostUsd: 9.7e-9 });
  step(charge(0, 1, 1.2e-9), topUp(0, { maxCostUsd: 1.7e-9 }));
  expect(account(0)).toMatchObject({ spent: { nanoUsd: 2 }, caps: { nanoUsd: 10 } });
});

test("B1: the ledger converts whole nano-dollars exactly up to a million USD", () => {
  const property = fc.property(fc.maxSafeNat(), (any) => {
    const nanoUsd = any % 1e15;
    const usd = fromNanoUsd(nanoUsd);
    expect([toNanoUsd(usd), toNanoUsdLimit(usd)]).toEqual([nanoUsd, nanoUsd]);
  });
  fc.assert(property);
});

test("B5: the ledger warns once per task and dimension at the soft threshold, and again after topUp", () => {
  const { step } = setup({ maxTokens: 10, maxCostUsd: 1 });
  expect(step(open(1, { maxTokens: 8, warnAt: 0.5 }), charge(1, 3)).warnings).toEqual([]);
  expect(step(charge(1, 1)).warnings).toEqual([{ taskId: "t1", dimension: "tokens", limit: 8, used: 4 }]);
  const tokens = { taskId: "t0", dimension: "tokens", limit: 10, used: 8 };
  const costUsd = { taskId: "t0", dimension: "costUsd", limit: 1, used: 0.8 };
  expect(step(reserve("a", { output: 4, usdPerToken: 0.2 })).warnings).toEqual([]);
  expect(step(lose("a")).warnings).toEqual([tokens, costUsd]);
  expect(step(charge(1, 1)).warnings).toEqual([]);
  expect(step(topUp(0, { maxTokens: 10, maxCostUsd: 1 }), charge(0, 6)).warnings).toEqual([]);
  expect(step(charge(0, 1)).warnings).toEqual([{ ...tokens, limit: 20, used: 16 }]);
});

test("B3: the ledger records spending by agent and model, lost spending separately, also after the task has ended", () => {
  const book = setup();
  const label = { agentId: formatAgentId({ name: "scout" }), provider: "acme", modelId: "m" };
  const call = { task: 1, output: 5, usdPerToken: 0.5, label };
  book.step(open(1), reserve("a", call), settle("a", 4, 1), reserve("b", call), lose("b"));
  book.step(
    reserve("c", call),
    refund("c"),
    reserve("d", { ...call, costUsd: null }),
    settle("d", 2, null),
    close(1),
  );
  const line = {
    label,
    calls: 3,
    lostCalls: 1,
    spent: spend(11, 35e8, 2),
    lost: spend(5, 25e8),
    unpriced: 1,
  };
  expect(book.state.lines).toEqual({ "scout 4 acme m": line });
});

test("B3: the late usage of an unreported call replaces its charge once, in every task and total, and frees budget", () => {
  const book = setup({ maxTokens: 20, maxCostUsd: 9 });
  const label = { agentId: formatAgentId({ name: "scout" }), provider: "acme", modelId: "m" };
  book.step(open(1), reserve("a", { task: 1, output: 12, usdPerToken: 0.5, label, day: "2026-11-16" }));
  book.step({ type: "narrow", id: "a", tokens: 10, costUsd: 5 }, lose("a"));
  expect(book.account(0)).toMatchObject({ spent: spend(10, 5e9), lost: spend(10, 5e9) });
  book.step(close(1), reserve("b", { output: 15, min: 15 }));
  const used = { tokens: 3, costUsd: 1.5, outputTokens: 2, cachedTokens: 1 };
  expect(book.step({ type: "correct", id: "a", ...used }).applied).toBe(true);
  expect(book.step({ type: "correct", id: "a", ...used, tokens: 1 }).applied).toBe(false);
  expect(book.account(0)).toMatchObject({ spent: spend(3, 15e8), lost: spend(0, 0) });
  expect(Object.values(book.state.tally)).toMatchObject([
    {
      inputTokens: 1,
      outputTokens: 2,
      cachedTokens: 1,
      nanoUsd: 15e8,
      lostTokens: 0,
      lostCalls: 0,
      turns: 0,
    },
  ]);
  expect(Object.values(book.state.lines)).toMatchObject([{ calls: 1, lostCalls: 0, spent: spend(3, 15e8) }]);
  expect(book.step(reserve("c", { output: 15, min: 15 })).decisions).toMatchObject([{ kind: "granted" }]);
});

test("B3: the ledger keeps providers and models whose names contain spaces apart", () => {
  const book = setup();
  const agentId = formatAgentId({ name: "scout" });
  const labels = [
    { agentId, provider: "acme one", modelId: "m" },
    { agentId, provider: "acme", modelId: "one m" },
  ];
  book.step(open(1));
  for (const [index, label] of labels.entries())
    book.step(
      reserve(`c${index}`, { task: 1, output: 5, usdPerToken: 0.5, label }),
      settle(`c${index}`, 4, 1),
    );
  expect(Object.values(book.state.lines).map((line) => [line.label, line.calls])).toEqual(
    labels.map((label) => [label, 1]),
  );
});

/**
 * A budget that pays for one call, which is in progress. Calls of the given priority classes wait for the budget in this
 * order.
 */
function poolOf(...classes: readonly Priority[]) {
  const book = setup({ maxTokens: 1 });
  let asked = 0;
  const ask = (priority: number): LedgerCommand => {
    asked += 1;
    return reserve(`${priority}/${asked}`, { task: 10 + priority });
  };
  book.step(reserve("first"), ...priorities.map((priority) => open(10 + priority, { priority })));
  book.step(...classes.map(ask));
  /**
   * Returns how often each class, from CRITICAL to BACKGROUND, gets the budget when it is free. A served call is queued
   * again.
   */
  const serve = (rounds: number): readonly number[] => {
    const served = Array.from({ length: rounds }, () => {
      const priority = Number.parseInt(book.decided(refund(book.state.open.map(({ id }) => id).join())), 10);
      book.step(ask(priority));
      return priority;
    });
    return priorities.map((priority) => served.filter((each) => each === priority).length);
  };
  return { book, ask, serve };
}

test.each([[[CRITICAL, HIGH, NORMAL, LOW]], [[LOW, NORMAL, BACKGROUND, HIGH, CRITICAL]]])(
  "B1: calls that wait for the same budget are served in the ratio 8:4:2:1 regardless of arrival: %j",
  (classes) => expect(poolOf(...classes, ...classes).serve(150)).toEqual([80, 40, 20, 10, 0]),
);

test("B1: every priority class with a weight is eventually served", () => {
  expect(poolOf(LOW, CRITICAL, CRITICAL).serve(9)).toEqual([8, 0, 0, 1, 0]);
});

test("B1: BACKGROUND is served only when no other class waits", () => {
  const { book } = poolOf(BACKGROUND, LOW, BACKGROUND);
  expect([book.decided(refund("first")), book.decided(refund("1/2"))]).toEqual(["1/2", "0/1"]);
});

test("B1: a priority class earns no credit for budget while no call waits in it", () => {
  const { book, ask, serve } = poolOf(HIGH, HIGH, BACKGROUND);
  serve(20);
  book.step(ask(NORMAL), ask(NORMAL));
  expect(serve(30)).toEqual([0, 20, 10, 0, 0]);
});

test("B1: a task gains no advantage by changing into an empty priority class", () => {
  const { book, ask, serve } = poolOf(HIGH, HIGH, NORMAL);
  book.step(withdraw("2/3"));
  serve(20);
  book.step(rank(10 + LOW, HIGH), ask(LOW), ask(LOW), rank(10 + LOW, NORMAL));
  expect(serve(30)).toEqual([0, 20, 0, 10, 0]);
});

test("B1: calls of one priority class are served in order of arrival", () => {
  const { decided, step } = setup({ maxTokens: 4 });
  step(open(1), open(2), reserve("a", { output: 4 }), reserve("b", { task: 2, output: 2 }));
  expect(decided(reserve("c", { task: 1 }), reserve("d", { task: 2 }), refund("a"))).toBe("b, c, d");
});

test("B1: a small call does not overtake a large call that waits for the same budget, but may if it needs another budget", () => {
  const { decided, step } = setup();
  step(open(1, { maxTokens: 10 }), open(2, { maxTokens: 10 }), open(3, { parent: 1 }));
  step(reserve("a", { task: 1, output: 5 }), reserve("large", { task: 1, output: 9 }));
  expect(decided(reserve("small", { task: 3 }))).toBe("");
  expect(decided(reserve("elsewhere", { task: 2 }))).toBe("elsewhere");
  expect(decided(settle("a", 0))).toBe("large, small");
});

test("B1: a ledger that went through JSON is equal and continues in the same way", () => {
  const { book, serve } = poolOf(LOW, CRITICAL, HIGH);
  serve(7);
  const copy = JSON.parse(JSON.stringify(book.state)) as Ledger;
  expect(copy).toEqual(book.state);
  for (const command of [refund(copy.open.map(({ id }) => id).join()), topUp(0, { maxTokens: 5 }), crash])
    expect(stepLedger(copy, command)).toEqual(stepLedger(book.state, command));
});

const trees = fc.array(fc.nat(2 ** 31 - 1), { minLength: 5, maxLength: 5 });
const seeds = fc.array(fc.nat(2 ** 31 - 1), { maxLength: 25 });

test("B1: concurrent callers never exceed a cap, and each call ends as granted or exhausted", () => {
  const property = fc.property(trees, seeds, seeds, (tree, calls, coins) => {
    const book = setup({ maxTokens: 24, maxTurns: 9 });
    book.step(...tree.map((seed, at) => given.anyOpen(at + 1, seed)));
    const callOf = (seed: number) => ({ task: seed % 6, input: seed % 5, output: seed % 13 });
    const callers = calls.map((seed, at) => reserve(`c${at}`, callOf(seed)));
    const decided: string[] = [];
    for (let at = 0; decided.length < calls.length || book.state.open.length > 0; at += 1) {
      const [before, coin] = [book.state, coins[at % coins.length] ?? 0];
      const holds = before.open;
      const hold = holds[coin % (holds.length + Math.min(callers.length, 1))];
      const { id, held } = hold ?? { id: "nobody", held: spend(0) };
      const ends = [settle(id, Math.floor(held.tokens / 2), null), lose(id), refund(id)];
      const command = hold === undefined ? callers.shift() : ends[(coin >> 8) % ends.length];
      if (command === undefined) throw new Error("a call waits although no reservation is open");
      decided.push(...book.step(command).decisions.map((each) => each.id));
      expect(brokenPromises(before, book.state, false)).toEqual([]);
    }
    expect(decided.toSorted()).toEqual(calls.map((_, at) => `c${at}`).toSorted());
  });
  fc.assert(property, { numRuns: propertyRuns(1_000) });
});

import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  deepFreeze,
  executionBudget,
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
  type ReserveCommand,
  type Spend,
  type TopUp,
  type UnknownPrice,
} from "../../src/kernel/index.ts";
import { LedgerOracle } from "./ledger-oracle.ts";

const { BACKGROUND, LOW, NORMAL, HIGH, CRITICAL } = Priority;
const units = ["tokens", "nanoUsd", "turns"] as const;
const refused = { applied: false, decisions: [], warnings: [], overrun: null };

interface OpenOptions extends Partial<ExecutionBudget> {
  readonly parent?: number | null;
  readonly priority?: Priority;
  readonly warnAt?: number;
}

interface ReserveOptions {
  readonly task?: number;
  readonly attempt?: number;
  readonly input?: number;
  readonly output?: number;
  readonly min?: number;
  readonly costUsd?: number | null;
  readonly usdPerToken?: number | null;
  readonly turns?: number;
}

function open(task: number, options: OpenOptions = {}): LedgerCommand {
  const { parent = 0, priority = NORMAL, warnAt, ...budget } = options;
  return {
    type: "open",
    taskId: formatTaskId(task),
    parentId: parent === null ? null : formatTaskId(parent),
    budget: executionBudget(budget),
    priority,
    ...(warnAt === undefined ? {} : { warnAt }),
  };
}

/** Free of charge and one token of output unless told. */
function reserve(id: string, options: ReserveOptions = {}): ReserveCommand {
  const { task = 0, attempt = 1, input = 0, output = 1, min, costUsd = 0, usdPerToken = 0, turns } = options;
  const least = min === undefined ? {} : { minTokens: min };
  return {
    ...{ type: "reserve", id, taskId: formatTaskId(task), attempt },
    input: { tokens: input, costUsd },
    output: { maxTokens: output, usdPerToken, ...least },
    ...(turns === undefined ? {} : { turns }),
  };
}

function settle(id: string, tokens: number, costUsd: number | null = 0): LedgerCommand {
  return { type: "settle", id, tokens, costUsd };
}

function charge(task: number, tokens: number, costUsd: number | null = 0, turns = 0): LedgerCommand {
  return { type: "charge", taskId: formatTaskId(task), tokens, costUsd, turns };
}

function topUp(task: number, add: Partial<TopUp>): LedgerCommand {
  return { type: "topUp", taskId: formatTaskId(task), add };
}

function close(task: number): LedgerCommand {
  return { type: "close", taskId: formatTaskId(task) };
}

function reprioritize(task: number, priority: Priority): LedgerCommand {
  return { type: "reprioritize", taskId: formatTaskId(task), priority };
}

const lose = (id: string): LedgerCommand => ({ type: "lose", id });
const refund = (id: string): LedgerCommand => ({ type: "refund", id });
const withdraw = (id: string): LedgerCommand => ({ type: "withdraw", id });
const crash: LedgerCommand = { type: "crash" };

/** A ledger whose states are frozen before they are stepped. `t0` is open with the budget given. */
function setup(root: OpenOptions = {}, unknownPrice: UnknownPrice = "refuse") {
  const book = {
    state: openLedger(unknownPrice),
    step(...commands: readonly LedgerCommand[]): LedgerOutcome {
      let outcome: LedgerOutcome = refused;
      for (const command of commands) {
        const next = stepLedger(deepFreeze(book.state), deepFreeze(command));
        book.state = next.state;
        outcome = next.outcome;
      }
      return outcome;
    },
    /** Who was granted, and who was refused and for what, in order. */
    decided: (...commands: readonly LedgerCommand[]): readonly string[] =>
      book.step(...commands).decisions.map((each) => {
        if (each.kind === "exhausted") return `${each.id} is out of ${each.exhaustion.dimension}`;
        return each.kind === "granted" ? each.id : `${each.id} has no price`;
      }),
    account(task: number): Account {
      const account = book.state.accounts[formatTaskId(task)];
      if (account === undefined) throw new Error(`t${task} has no account`);
      return account;
    },
  };
  book.step(open(0, { ...root, parent: null }));
  return book;
}

const spend = (tokens: number, nanoUsd = 0, turns = 0): Spend => ({ tokens, nanoUsd, turns });

describe("caps", () => {
  test("B2: null is unlimited", () => {
    const { step } = setup();
    const { decisions } = step(reserve("a", { input: 1e9, output: 1e9, costUsd: 1000, turns: 1e9 }));
    expect(decisions).toEqual([{ id: "a", kind: "granted", outputTokens: 1e9, clamped: false }]);
  });

  test.each([
    [{ maxTokens: 0 }, { dimension: "tokens", used: 1 }],
    [{ maxCostUsd: 0 }, { dimension: "costUsd", used: 0.25 }],
    [{ maxTurns: 0 }, { dimension: "turns", used: 1 }],
  ])("B2: zero is zero, also when it is handed to a child: %j", (budget, exhaustion) => {
    const handed = tightenBudget(executionBudget(budget), {});
    const { step } = setup();
    step(open(1, handed), open(2, tightenBudget(executionBudget(), budget)));
    for (const task of [1, 2]) {
      const { decisions } = step(reserve("a", { task, usdPerToken: 0.25 }));
      const expected = { taskId: formatTaskId(task), limit: 0, ...exhaustion };
      expect(decisions).toEqual([{ id: "a", kind: "exhausted", exhaustion: expected }]);
    }
  });

  test("B6: what a child spends, holds and loses counts against every ancestor", () => {
    const { step, account } = setup();
    step(open(1), open(2, { parent: 1 }), open(3));
    step(reserve("a", { task: 2, input: 3, output: 2 }), settle("a", 4, 0.5));
    step(reserve("b", { task: 2, output: 6 }), lose("b"), reserve("c", { task: 2, output: 7, turns: 0 }));
    for (const task of [0, 1, 2]) {
      expect(account(task)).toMatchObject({ spent: spend(10, 5e8, 2), lost: spend(6, 0, 1) });
      expect(account(task).reserved).toEqual(spend(7));
    }
    expect(account(3)).toMatchObject({ spent: spend(0), reserved: spend(0) });
  });

  test("B6: a child cannot spend more than an ancestor has, whatever its own budget says", () => {
    const { step } = setup({ maxTokens: 5 });
    step(open(1, { maxTokens: 100 }), charge(0, 5));
    const exhaustion = { taskId: "t0", dimension: "tokens", limit: 5, used: 6 };
    expect(step(reserve("a", { task: 1 })).decisions).toEqual([{ id: "a", kind: "exhausted", exhaustion }]);
  });

  test("B1: nothing is granted above a cap", () => {
    const { step, account, decided } = setup({ maxTokens: 10, maxTurns: 3 });
    step(reserve("a", { output: 6 }));
    expect(decided(reserve("b", { output: 5 }))).toEqual([]);
    expect(decided(reserve("c", { output: 4 }))).toEqual([]);
    expect(account(0).reserved).toEqual(spend(6, 0, 1));
    expect(decided(withdraw("b"))).toEqual(["c"]);
    expect(account(0).reserved).toEqual(spend(10, 0, 2));
  });

  test("B6: a closed account keeps its caps while children live, and goes with the last of them", () => {
    const { step, decided, account } = setup();
    step(open(1, { maxTokens: 4 }), open(2, { parent: 1 }), charge(2, 3), close(1));
    expect(step(reserve("a", { task: 1 }))).toEqual(refused);
    expect(decided(reserve("a", { task: 2, output: 9, min: 2 }))).toEqual(["a is out of tokens"]);
    expect(account(1)).toMatchObject({ closed: true, children: 1 });
    step(close(2));
    expect(account(0)).toMatchObject({ children: 0, spent: spend(3) });
    expect(() => account(1)).toThrow("no account");
  });

  test("B6: a task whose calls are open or waiting cannot be closed", () => {
    const { step } = setup({ maxTokens: 1 });
    step(open(1), open(2), reserve("a", { task: 1 }), reserve("b", { task: 2 }));
    expect([step(close(1)), step(close(2))]).toEqual([refused, refused]);
    expect(step(refund("a"), close(1)).applied).toBe(true);
  });
});

describe("a reservation", () => {
  test("B1: that does not fit waits while another is open, and is granted when that one settles below its bound", () => {
    const { step, decided, account } = setup({ maxTokens: 10 });
    step(reserve("a", { output: 8 }));
    expect(step(reserve("b", { output: 5 }))).toEqual({ ...refused, applied: true });
    expect(decided(settle("a", 5))).toEqual(["b"]);
    expect(account(0)).toMatchObject({ spent: spend(5, 0, 1), reserved: spend(5, 0, 1) });
  });

  test("B1: that does not fit fails when nothing is open", () => {
    const { decided } = setup({ maxTokens: 10 });
    expect(decided(reserve("a", { input: 10 }))).toEqual(["a is out of tokens"]);
  });

  test("B1: that waited fails as soon as no open one can make room for it", () => {
    const { step, decided } = setup({ maxTokens: 10 });
    step(reserve("a", { output: 5 }), reserve("b", { output: 2 }), reserve("c", { output: 6, min: 6 }));
    expect(decided(settle("a", 5))).toEqual(["c is out of tokens"]);
  });

  test("B1: is clamped to the tokens that are left, and says so", () => {
    const { step } = setup({ maxTokens: 10 });
    const [decision] = step(reserve("a", { input: 4, output: 100 })).decisions;
    expect(decision).toEqual({ id: "a", kind: "granted", outputTokens: 6, clamped: true });
  });

  test("B1: is clamped to the dollars that are left in the tightest account above it", () => {
    const { step } = setup({ maxCostUsd: 1 });
    step(open(1, { maxCostUsd: 5 }), charge(0, 0, 0.3));
    const [decision] = step(
      reserve("a", { task: 1, output: 100, costUsd: 0.1, usdPerToken: 0.25 }),
    ).decisions;
    expect(decision).toEqual({ id: "a", kind: "granted", outputTokens: 2, clamped: true });
  });

  test("B1: waits for room instead of being clamped to what others hold for the moment", () => {
    const { step, decided, account } = setup({ maxTokens: 10 });
    step(reserve("a", { output: 8 }));
    expect(decided(reserve("b", { output: 20 }))).toEqual([]);
    expect(decided(settle("a", 1))).toEqual(["b"]);
    expect(account(0).reserved.tokens).toBe(9);
  });

  test("B1: that would be clamped below its smallest useful output fails", () => {
    const { decided } = setup({ maxTokens: 10 });
    expect(decided(reserve("a", { output: 20, min: 11 }))).toEqual(["a is out of tokens"]);
    expect(decided(reserve("b", { output: 20, min: 10 }))).toEqual(["b"]);
  });

  test("B3: that is lost is charged in full, as lost", () => {
    const { step, account } = setup();
    step(reserve("a", { input: 2, output: 3, usdPerToken: 0.5 }), lose("a"));
    const full = spend(5, 15e8, 1);
    expect(account(0)).toMatchObject({ spent: full, lost: full, reserved: spend(0) });
  });

  test("B3: that is refunded is charged nothing", () => {
    const { step, account } = setup();
    step(reserve("a", { input: 2, output: 3, usdPerToken: 0.5 }), refund("a"));
    expect(account(0)).toMatchObject({ spent: spend(0), lost: spend(0), reserved: spend(0) });
  });

  test("B3: of a retry in the same turn counts no further turn", () => {
    const { step, decided, account } = setup({ maxTurns: 1 });
    step(reserve("a"), lose("a"));
    expect(decided(reserve("a", { attempt: 2, turns: 0 }), reserve("b"))).toEqual(["b is out of turns"]);
    expect(account(0)).toMatchObject({ spent: spend(1, 0, 1), reserved: spend(1) });
  });

  test("B3: settled without a known cost is charged the dollars that were held", () => {
    const { step, account } = setup();
    step(reserve("a", { output: 4, costUsd: 1, usdPerToken: 0.5 }), settle("a", 1, null));
    expect(account(0)).toMatchObject({ spent: spend(1, 3e9, 1), lost: spend(0), unpriced: 0 });
  });

  test("ends once: what is not open or not waiting changes nothing", () => {
    const book = setup({ maxTokens: 3 });
    book.step(reserve("a", { output: 2 }), settle("a", 1), reserve("b", { output: 2 }), reserve("c"));
    const before = book.state;
    const unknown = [settle("a", 1), lose("a"), refund("a"), withdraw("a"), withdraw("b"), settle("c", 1)];
    const elsewhere = [charge(9, 1), topUp(9, {}), reprioritize(9, LOW), close(9), reserve("d", { task: 9 })];
    const taken = [reserve("b"), reserve("c"), open(0), open(1, { parent: 9 })];
    for (const command of [...unknown, ...elsewhere, ...taken]) {
      expect(book.step(command)).toEqual(refused);
      expect(book.state).toBe(before);
    }
  });

  test.each(["constructor", "__proto__", "7"])("may have any id: %s", (id) => {
    const { step, decided, account } = setup({ maxTokens: 5 });
    expect([step(settle(id, 1)), step(lose(id)), step(withdraw(id))]).toEqual([refused, refused, refused]);
    expect(decided(reserve(id))).toEqual([id]);
    step(settle(id, 1));
    expect(account(0)).toMatchObject({ spent: spend(1, 0, 1), reserved: spend(0) });
  });
});

describe("a crash", () => {
  test("B3: loses all that is open, with its attempt, and forgets all that waits", () => {
    const book = setup({ maxTokens: 10 });
    book.step(
      reserve("a", { output: 4 }),
      reserve("b", { output: 5, attempt: 3 }),
      reserve("c", { output: 2 }),
    );
    expect(book.state.open).toMatchObject({ a: { attempt: 1 }, b: { attempt: 3 } });
    expect(book.step(crash)).toMatchObject({ applied: true, decisions: [] });
    expect(book.state).toMatchObject({ open: {}, waiting: [], passes: {} });
    expect(book.account(0)).toMatchObject({
      spent: spend(9, 0, 2),
      lost: spend(9, 0, 2),
      reserved: spend(0),
    });
  });

  test("B3: leaves spent = what the uncrashed run spends + lost", () => {
    const [plain, crashed] = [setup(), setup()];
    const [first, second] = [reserve("a", { output: 9, usdPerToken: 0.5 }), reserve("b", { output: 3 })];
    plain.step(first, settle("a", 7, 2), second, settle("b", 2));
    crashed.step(first, crash, { ...first, attempt: 2 }, settle("a", 7, 2), second, crash);
    crashed.step({ ...second, attempt: 2 }, settle("b", 2));
    expect(crashed.account(0).lost).toEqual(spend(12, 45e8, 2));
    for (const unit of units) {
      const { spent, lost } = crashed.account(0);
      expect(spent[unit]).toBe(plain.account(0).spent[unit] + lost[unit]);
    }
  });
});

describe("an overrun", () => {
  test.each([
    [settle("a", 6, 1), { dimension: "tokens", limit: 5, used: 6 }],
    [settle("a", 5, 1.5), { dimension: "costUsd", limit: 1.25, used: 1.5 }],
  ])("B1: billed above the bound is recorded, and nothing is granted until topUp: %j", (command, found) => {
    const book = setup({ maxTokens: 8 });
    book.step(reserve("a", { output: 5, usdPerToken: 0.25 }), reserve("b", { output: 4 }));
    const overrun = { taskId: "t0", reservationId: "a", ...found };
    const { decisions, ...outcome } = book.step(command);
    expect(outcome.overrun).toEqual(overrun);
    expect(decisions).toMatchObject([{ id: "b", kind: "exhausted", exhaustion: found }]);
    expect(book.state.overrun).toEqual(overrun);
    expect(book.decided(open(1), reserve("c", { task: 1 }))).toEqual([`c is out of ${found.dimension}`]);
    book.step(topUp(0, { maxTokens: 1 }));
    expect(book.state.overrun).toBeNull();
    expect(book.decided(reserve("d"))).toEqual(["d"]);
  });

  test.each([
    [charge(1, 6, 2, 1), { taskId: "t1", dimension: "tokens", limit: 5, used: 6 }],
    [charge(1, 5, 2.5, 3), { taskId: "t0", dimension: "costUsd", limit: 2, used: 2.5 }],
    [charge(1, 5, 2, 2), { taskId: "t0", dimension: "turns", limit: 2, used: 3 }],
  ])("B1: a charge past a cap, holds counted, names the account and the dimension: %j", (command, found) => {
    const { step } = setup({ maxCostUsd: 2, maxTurns: 2 });
    step(open(1, { maxTokens: 5 }), reserve("a", { output: 0 }));
    expect(step(command).overrun).toEqual({ ...found, reservationId: null });
  });

  test("B1: a charge up to a cap is none", () => {
    const { step, account } = setup({ maxTokens: 5, maxCostUsd: 2, maxTurns: 2 });
    expect(step(charge(0, 5, 2, 2)).overrun).toBeNull();
    expect(account(0).spent).toEqual(spend(5, 2e9, 2));
  });

  test("B1: a call without a known price that turns out to pass a cost cap is one", () => {
    const book = setup({ maxCostUsd: 1 }, "ignore");
    book.step(reserve("a", { costUsd: null }), reserve("b", { costUsd: null }), reserve("c", { turns: 0 }));
    expect(book.step(settle("a", 1, 1)).overrun).toBeNull();
    const overrun = { taskId: "t0", dimension: "costUsd", limit: 1, used: 1.5, reservationId: "b" };
    expect(book.step(settle("b", 1, 0.5)).overrun).toEqual(overrun);
    expect(book.decided(reserve("d"))).toEqual(["d is out of costUsd"]);
  });
});

describe("prices", () => {
  test.each([{ costUsd: null }, { usdPerToken: null }])(
    "B4: a call without a known price is refused under a cost cap, its own or above: %j",
    (price) => {
      const { step } = setup({ maxCostUsd: 100 });
      const decision = { id: "a", kind: "unknown_price", taskId: "t0" };
      expect(step(open(1), reserve("a", { task: 1, ...price })).decisions).toEqual([decision]);
    },
  );

  test("B4: it is granted without a cost cap, or when told to ignore that, and never counted at zero in silence", () => {
    for (const { step, decided, account } of [setup(), setup({ maxCostUsd: 1 }, "ignore")]) {
      const unknown = { costUsd: null, output: 5 };
      expect(decided(reserve("a", unknown))).toEqual(["a"]);
      step(settle("a", 5, null), reserve("b", unknown), lose("b"), reserve("c", unknown), crash);
      step(reserve("d", unknown), refund("d"), charge(0, 1, null));
      expect(account(0)).toMatchObject({ spent: { nanoUsd: 0, tokens: 16 }, unpriced: 4 });
    }
  });

  test("B4: a cost that the provider reports after all is charged and not counted as unpriced", () => {
    const { step, account } = setup();
    step(reserve("a", { costUsd: null }), settle("a", 1, 0.5));
    expect(account(0)).toMatchObject({ spent: { nanoUsd: 5e8 }, unpriced: 0 });
  });

  test("B1: nano-dollars add up exactly: 0.1 + 0.2 fits a cap of 0.3", () => {
    const { step, decided, account } = setup({ maxCostUsd: 0.3 });
    step(reserve("a", { costUsd: 0.1 }));
    expect(decided(reserve("b", { costUsd: 0.2 }))).toEqual(["b"]);
    step(settle("a", 1, 0.1), settle("b", 1, 0.2));
    expect(account(0).spent.nanoUsd).toBe(account(0).caps.nanoUsd);
  });

  test("B1: parts of a nano-dollar are rounded up when spent, and down in a cap and its topUp", () => {
    const { step, account } = setup({ maxCostUsd: 9.7e-9 });
    step(charge(0, 1, 1.2e-9), topUp(0, { maxCostUsd: 1.7e-9 }));
    expect(account(0)).toMatchObject({ spent: { nanoUsd: 2 }, caps: { nanoUsd: 10 } });
  });

  test("B1: an amount of whole nano-dollars is itself, up to 9 million USD", () => {
    const exact = (nanoUsd: number): void => {
      expect(toNanoUsd(fromNanoUsd(nanoUsd))).toBe(nanoUsd);
      expect(toNanoUsdLimit(fromNanoUsd(nanoUsd))).toBe(nanoUsd);
    };
    fc.assert(fc.property(fc.nat(2 ** 31), fc.nat(4_000_000), (low, high) => exact(high * 2 ** 31 + low)));
  });
});

test.each<[string, () => LedgerCommand]>([
  ["input tokens", () => reserve("a", { input: -1 })],
  ["input tokens", () => reserve("a", { input: 0.5 })],
  ["output tokens", () => reserve("a", { output: Number.NaN })],
  ["smallest output", () => reserve("a", { min: -1 })],
  ["smallest output", () => reserve("a", { min: Number.NaN })],
  ["turns", () => reserve("a", { turns: 1.5 })],
  ["input cost", () => reserve("a", { costUsd: -1, usdPerToken: 5 })],
  ["input cost", () => reserve("a", { costUsd: Number.NaN })],
  ["price of output", () => reserve("a", { costUsd: 5, usdPerToken: -1 })],
  ["price of output", () => reserve("a", { usdPerToken: Number.POSITIVE_INFINITY })],
  ["tokens settled", () => settle("open", -1)],
  ["cost settled", () => settle("open", 1, -0.5)],
  ["tokens charged", () => charge(0, 0.5)],
  ["cost charged", () => charge(0, 1, Number.NaN)],
  ["turns charged", () => charge(0, 1, 0, -1)],
  ["tokens added", () => topUp(0, { maxTokens: -1 })],
  ["dollars added", () => topUp(0, { maxCostUsd: Number.NaN })],
  ["turns added", () => topUp(0, { maxTurns: 0.5 })],
  ["budget", () => open(1, { maxTokens: Number.NaN })],
  ["budget", () => open(1, { maxCostUsd: -1 })],
])("B2: bad amounts are refused: %s in %s", (_name, command) => {
  const { step } = setup({ maxTokens: 3 });
  step(reserve("open"));
  expect(() => step(command())).toThrow(expect.objectContaining({ code: "invalid_argument" }));
});

describe("a warning", () => {
  test("B5: comes once for each dimension and account at the soft threshold", () => {
    const { step } = setup({ maxTokens: 10, maxCostUsd: 1 });
    step(open(1, { maxTokens: 8, warnAt: 0.5 }));
    expect(step(charge(1, 3)).warnings).toEqual([]);
    const own = { taskId: "t1", dimension: "tokens", limit: 8, used: 4 };
    expect(step(charge(1, 1)).warnings).toEqual([own]);
    const tokens = { taskId: "t0", dimension: "tokens", limit: 10, used: 8 };
    const costUsd = { taskId: "t0", dimension: "costUsd", limit: 1, used: 0.8 };
    expect(step(reserve("a", { output: 4, usdPerToken: 0.2 })).warnings).toEqual([]);
    expect(step(charge(1, 0), lose("a")).warnings).toEqual([tokens, costUsd]);
    expect(step(charge(1, 1)).warnings).toEqual([]);
  });

  test("B5: comes again after topUp", () => {
    const { step } = setup({ maxTokens: 10 });
    step(charge(0, 8), topUp(0, { maxTokens: 10 }));
    expect(step(charge(0, 7)).warnings).toEqual([]);
    expect(step(charge(0, 1)).warnings).toMatchObject([{ limit: 20, used: 16 }]);
  });
});

describe("the queue", () => {
  /** One pool with room for one call, which is taken. One task for each priority. */
  function poolOf(classes: readonly Priority[]) {
    const book = setup({ maxTokens: 1 });
    book.step(reserve("first"));
    for (const priority of priorities) book.step(open(10 + priority, { priority }));
    let asked = 0;
    const ask = (priority: Priority): LedgerCommand => {
      asked += 1;
      return reserve(`${priority}/${asked}`, { task: 10 + priority });
    };
    for (const priority of classes) book.step(ask(priority), ask(priority));
    /** Frees the place again and again. Who takes it asks again. */
    const serve = (rounds: number): readonly number[] =>
      Array.from({ length: rounds }, () => {
        const [served = "nobody"] = book.decided(refund(Object.keys(book.state.open).join()));
        const priority = priorities.find((each) => served.startsWith(`${each}/`)) ?? Number.NaN;
        book.step(ask(priority as Priority));
        return priority;
      });
    return { ...book, ask, serve };
  }

  const countOf = (served: readonly number[], priority: Priority): number =>
    served.filter((each) => each === priority).length;

  test.each([
    [[CRITICAL, HIGH, NORMAL, LOW]],
    [[LOW, NORMAL, HIGH, CRITICAL]],
    [[HIGH, LOW, BACKGROUND, CRITICAL, NORMAL]],
  ])("B1: serves in the ratio 8:4:2:1, whoever asked first: %j", (classes) => {
    const served = poolOf(classes).serve(150);
    expect(priorities.map((priority) => countOf(served, priority))).toEqual([80, 40, 20, 10, 0]);
  });

  test("B1: serves BACKGROUND only when nobody else waits", () => {
    const { step, decided, ask } = poolOf([BACKGROUND]);
    step(ask(LOW));
    expect(decided(refund("first"))).toEqual(["1/3"]);
    expect(decided(refund("1/3"))).toEqual(["0/1"]);
  });

  test("B1: gives a class no credit for the time in which nobody waited in it", () => {
    const { step, ask, serve } = poolOf([HIGH, BACKGROUND]);
    serve(20);
    step(ask(NORMAL), ask(NORMAL));
    expect(countOf(serve(30), NORMAL)).toBe(10);
  });

  test("B1: gives no credit to those who change into a class that nobody waits in", () => {
    const { step, ask, serve } = poolOf([HIGH]);
    step(open(1, { priority: NORMAL }), reserve("away", { task: 1 }), withdraw("away"));
    serve(20);
    step(reprioritize(10 + LOW, HIGH), ask(LOW), ask(LOW), reprioritize(10 + LOW, NORMAL));
    expect(serve(30).filter((priority) => priority === LOW)).toHaveLength(10);
  });

  test("B1: is first come, first served within a class", () => {
    const { decided, step } = setup({ maxTokens: 4 });
    step(open(1), open(2), reserve("a", { output: 4 }));
    step(reserve("b", { task: 2, output: 2 }), reserve("c", { task: 1 }), reserve("d", { task: 2 }));
    expect(decided(refund("a"))).toEqual(["b", "c", "d"]);
  });

  test("B1: lets no small call overtake a large one that waits for the same account, but one in another pool", () => {
    const { decided, step } = setup();
    step(open(1, { maxTokens: 10 }), open(2, { maxTokens: 10 }), open(3, { parent: 1 }));
    step(reserve("a", { task: 1, output: 5 }), reserve("large", { task: 1, output: 9 }));
    expect(decided(reserve("small", { task: 3 }))).toEqual([]);
    expect(decided(reserve("elsewhere", { task: 2 }))).toEqual(["elsewhere"]);
    expect(decided(settle("a", 0))).toEqual(["large", "small"]);
  });

  test("B1: follows a changed priority at once", () => {
    const { decided, step } = setup({ maxTokens: 1 });
    step(open(1), open(2), reserve("a"), reserve("b", { task: 1 }), reserve("c", { task: 2 }));
    expect(decided(reprioritize(2, HIGH), refund("a"))).toEqual(["c"]);
  });

  test("B5: is served by a topUp", () => {
    const { decided, step } = setup({ maxTokens: 3 });
    step(reserve("a", { output: 2 }), reserve("b", { output: 2 }));
    expect(decided(topUp(0, { maxTokens: 1 }))).toEqual(["b"]);
  });

  test("is the same after a round trip through JSON, and goes on in the same way", () => {
    const { serve, ...book } = poolOf([LOW, CRITICAL, HIGH]);
    serve(7);
    const copy = JSON.parse(JSON.stringify(book.state)) as Ledger;
    expect(copy).toEqual(book.state);
    const commands = [refund(Object.keys(copy.open).join()), crash, topUp(0, { maxTokens: 5 })];
    for (const command of commands)
      expect(stepLedger(copy, command)).toEqual(stepLedger(book.state, command));
  });
});

import {
  executionBudget,
  formatAgentId,
  formatTaskId,
  priorities,
  Priority,
  type CostLabel,
  type ExecutionBudget,
  type Ledger,
  type LedgerCommand,
  type Reservation,
  type ReserveCommand,
  type Spend,
  type TopUp,
} from "../../../src/kernel/index.ts";

type CommandOf<Type extends LedgerCommand["type"]> = Extract<LedgerCommand, { type: Type }>;

const nothing: Spend = { tokens: 0, nanoUsd: 0, turns: 0 };
const labels: readonly CostLabel[] = [0, 1].map((name) => ({
  agentId: formatAgentId({ name: `agent${name}` }),
  provider: "acme",
  modelId: "m",
}));
const on = (task: number) => ({ taskId: formatTaskId(task) });
const call = { task: 0, attempt: 1, input: 0, output: 1, min: 1, turns: 1 };
const price: { costUsd: number | null; usdPerToken: number | null } = { costUsd: 0, usdPerToken: 0 };
type OpenOptions = Partial<ExecutionBudget & { parent: number | null; priority: Priority; warnAt: number }>;

/** A command that opens an account. Default: below `t0` and without caps. */
export function open(task: number, options: OpenOptions = {}): CommandOf<"open"> {
  const { parent = 0, priority = Priority.NORMAL, warnAt = 0.8, ...budget } = options;
  const parentId = parent === null ? null : formatTaskId(parent);
  return { type: "open", ...on(task), parentId, budget: executionBudget(budget), priority, warnAt };
}

/** A command that reserves a call. Default: free of charge, one turn and one token of output. */
export function reserve(
  id: string,
  {
    label,
    day,
    hour,
    ...options
  }: Partial<typeof call & typeof price> & {
    readonly label?: CostLabel | undefined;
    readonly day?: string | undefined;
    readonly hour?: number | undefined;
  } = {},
): ReserveCommand {
  const all = { ...call, ...price, ...options };
  const input = { tokens: all.input, costUsd: all.costUsd };
  const output = { maxTokens: all.output, minTokens: all.min, usdPerToken: all.usdPerToken };
  const { attempt, turns } = all;
  const optional = { ...(label && { label }), ...(day && { day }), ...(hour !== undefined && { hour }) };
  return { type: "reserve", id, ...on(all.task), attempt, input, output, turns, ...optional };
}

export const crash = { type: "crash" } as const;
export const lose = (id: string) => ({ type: "lose", id }) as const;
export const refund = (id: string) => ({ type: "refund", id }) as const;
export const withdraw = (id: string) => ({ type: "withdraw", id }) as const;
export const settle = (id: string, tokens: number, costUsd: number | null = 0) =>
  ({ type: "settle", id, tokens, costUsd }) as const;
export const charge = (task: number, tokens: number, costUsd: number | null = 0, turns = 0) =>
  ({ type: "charge", ...on(task), tokens, costUsd, turns }) as const;
export const topUp = (task: number, add: Partial<TopUp>) => ({ type: "topUp", ...on(task), add }) as const;
export const rank = (task: number, priority: Priority) =>
  ({ type: "reprioritize", ...on(task), priority }) as const;
export const close = (task: number) => ({ type: "close", ...on(task) }) as const;

/**
 * Splits one random number into many small ones, each of which picks a value. One number is cheap to generate and
 * shrinks well.
 */
function pickerOf(seed: number): <Value>(...values: readonly Value[]) => Value {
  let rest = seed;
  return <Value>(...values: readonly Value[]) => {
    const value = values[rest % values.length] as Value;
    rest = Math.floor(rest / values.length);
    return value;
  };
}

export function anyOpen(task: number, seed: number): LedgerCommand {
  const pick = pickerOf(seed);
  const maxTokens = task === 0 ? pick(16, 20, 24, 30, null) : pick(null, 20, null, 10, null, 0);
  const [maxCostUsd, maxTurns] = [pick(null, 40e-9, null, 20e-9), pick(null, 12, null, 6)];
  const parent = task === 0 ? null : pick(...[0, 1, 2].slice(0, task));
  const [priority, warnAt] = [pick(...priorities), pick(0.8, 0.5, 1)];
  return open(task, { parent, maxTokens, maxCostUsd, maxTurns, priority, warnAt });
}

const days = [undefined, "2026-11-15", "2026-11-16", "2026-11-16"] as const;
const hours = [undefined, 0, 23, 13] as const;
const letters = "abcdefgh".split("");
const nobody: Omit<Reservation, "taskId" | "attempt"> = { id: "nobody", held: nothing, priced: false };

/**
 * Returns a random command, mostly about reservations that are open or wait in the ledger. Bills above the bound are
 * rare.
 */
export function anyCommand(seed: number, { open: holds, waiting, lostCalls }: Ledger): LedgerCommand {
  const pick = pickerOf(seed);
  const rare = pick(
    "crash",
    "open",
    "close",
    "charge",
    "withdraw",
    "lose",
    "topUp",
    "reprioritize",
    "narrow",
    "correct",
  );
  const often = pick("reprioritize", "refund", "refund", "settle", "settle", "settle", rare, rare, rare);
  const type = pick("reserve", often);
  const [task, letter] = [pick(0, 1, 2, 3, 4, 3, 4, 5), pick(...letters)];
  const [few, some, turns] = [pick(0, 1, 2, 3), pick(0, 1, 3, 5, 7, 9, 12, 14), pick(1, 0, 2)];
  const [costUsd, usdPerToken] = [pick(0, 1e-9, 3e-9, 2e-9, null), pick(0, 1e-9, 2e-9)];
  const { id, held, priced } = pick<typeof nobody>(...holds, nobody);
  const above = Math.max(0, pick(...Array(16).keys()) - 14);
  const part = (amount: number): number => Math.floor((amount * some) / 14) + above;
  const commands: Readonly<Record<LedgerCommand["type"], LedgerCommand>> = {
    open: anyOpen(task, seed),
    reserve: reserve(letter, {
      task,
      input: few,
      output: some,
      min: turns,
      turns,
      costUsd,
      usdPerToken,
      label: labels[task],
      day: days[few],
      hour: days[few] === undefined ? undefined : hours[some % 4],
    }),
    settle: {
      ...settle(id, part(held.tokens), priced && costUsd !== null ? part(held.nanoUsd) / 1e9 : costUsd),
      ...(turns > 0 && { outputTokens: Math.floor(part(held.tokens) / 2), cachedTokens: few }),
      ...(few > 0 && { durationMs: some * 100 }),
    },
    lose: { ...lose(id), ...(few > 1 && { failed: true }) },
    refund: { ...refund(id), ...(few > 1 && { failed: true }) },
    narrow: {
      type: "narrow",
      id,
      tokens: part(held.tokens),
      costUsd: priced ? part(held.nanoUsd) / 1e9 : null,
    },
    correct: {
      type: "correct",
      id: pick(...Object.keys(lostCalls), letter),
      tokens: some,
      costUsd,
      ...(turns > 0 && { outputTokens: Math.min(some, few), cachedTokens: few }),
    },
    withdraw: withdraw(pick(...waiting.map((each) => each.id), letter)),
    charge: charge(task, few, costUsd, turns),
    topUp: topUp(task, { maxTokens: some, maxCostUsd: few / 1e9, maxTurns: turns }),
    reprioritize: rank(task, pick(...priorities)),
    close: close(task),
    crash,
  };
  return commands[type];
}

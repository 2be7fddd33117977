import {
  canonicalJson,
  endsRun,
  fromNanoUsd,
  toNanoUsd,
  totalTokens,
  type EventType,
  type RunId,
  type Spend,
} from "../kernel/index.ts";
import type { ServedCall } from "./counting-server.ts";
import { compareLogs, findGap } from "./event-strands.ts";
import type { RunTrace } from "./run-trace.ts";

/** Names of the promises that a crash must not break. */
export type CrashPromise =
  /** Every worker process ends as expected, and the last one finishes the work. */
  | "finished"
  /** J1: no call with a recorded answer is made again. */
  | "recorded_once"
  /** J6: only calls that were in flight are repeated, at most one per concurrent branch. */
  | "in_flight_only"
  /** The crashed case makes the same calls as the case without a crash. */
  | "same_calls"
  | "same_output"
  /**
   * B3: spend equals the spend of the uncrashed run plus lost reservations, `run_end` reports it, and nothing stays
   * reserved.
   */
  | "spent"
  /** U1: the usage that the commits of an ended run add to the store's totals is what the run spent. */
  | "totals"
  /** B1: the billed amount is at most the recorded spend, which is at most the cap. */
  | "billed"
  /** E1, E4: no event is lost, duplicated or out of order, and the hash chain verifies. */
  | "events"
  /** H1, H4: the number of taken seats never exceeds the cap, and at the end only the root holds a seat. */
  | "seats";

export interface Broken {
  readonly promise: CrashPromise;
  readonly detail: string;
}

/**
 * One worker process: the name under which it made calls, and the receipts recorded in the store when the process
 * ended.
 */
export interface Life {
  readonly caller: string;
  readonly receipts: ReadonlySet<string>;
}

/** Data of a case that is checked after its last worker process has ended. */
export interface CaseTrace {
  readonly lives: readonly Life[];
  readonly calls: readonly ServedCall[];
  readonly runs: readonly RunTrace[];
}

export interface PromiseOptions {
  /** Maximum number of calls that the work has in flight at the same time. */
  readonly branches: number;
  readonly ignore: readonly EventType[];
  /** `true` if the budget may be exhausted, so that output, calls and events may differ from the uncrashed run. */
  readonly mayExhaust: boolean;
  /** `true` if branches of one task run concurrently. See `compareLogs`. */
  readonly sideBySide?: boolean;
}

/** Returns the promises that a case broke, compared with the case without a crash. */
export function checkCase(
  actual: CaseTrace,
  uncrashed: CaseTrace,
  options: PromiseOptions,
): readonly Broken[] {
  return [
    ...checkRepeats(actual, options.branches),
    ...(options.mayExhaust ? [] : checkCalls(actual, uncrashed)),
    ...checkBill(actual),
    ...uncrashed.runs.flatMap((expected) => {
      const run = actual.runs.find(({ runId }) => runId === expected.runId);
      if (run === undefined) return [broken("finished", expected.runId, "is not in the store")];
      return checkRun(run, expected, options);
    }),
  ];
}

function checkRun(run: RunTrace, expected: RunTrace, options: PromiseOptions): Broken[] {
  const { mayExhaust } = options;
  return [
    ...(mayExhaust ? [] : checkOutput(run, expected)),
    ...checkMoney(run, expected, mayExhaust),
    ...checkStatement(run),
    ...checkTotals(run),
    ...checkEvents(run, mayExhaust ? undefined : expected, options),
    ...checkSeats(run),
  ];
}

function checkRepeats({ lives, calls }: CaseTrace, branches: number): Broken[] {
  const found: Broken[] = [];
  const before = new Set<string>();
  const recorded = new Set<string>();
  for (const [index, { caller, receipts }] of lives.entries()) {
    const own = calls.filter((call) => call.caller === caller);
    const keys = own.map(({ name, key }) => `${name} ${key}`);
    const twice = keys.filter((key, place) => keys.indexOf(key) !== place);
    for (const key of twice) found.push(broken("in_flight_only", key, `was made twice in life ${index + 1}`));
    for (const { name, key, receipt } of own) {
      if (recorded.has(receipt)) {
        found.push(
          broken(
            "recorded_once",
            `${name} ${key}`,
            `was repeated in life ${index + 1} although its answer was recorded`,
          ),
        );
      }
    }
    const again = new Set(keys.filter((key) => before.has(key)));
    if (again.size > branches) {
      const detail = `were repeated in life ${index + 1}; at most ${branches} were in flight`;
      found.push(broken("in_flight_only", [...again].join(", "), detail));
    }
    for (const key of keys) before.add(key);
    for (const receipt of receipts) recorded.add(receipt);
  }
  return found;
}

function checkCalls(actual: CaseTrace, uncrashed: CaseTrace): Broken[] {
  const names = ({ calls }: CaseTrace): Set<string> =>
    new Set(calls.map(({ name, key }) => `${name} ${key}`));
  const [made, expected] = [names(actual), names(uncrashed)];
  return [
    ...[...expected]
      .filter((call) => !made.has(call))
      .map((call) => broken("same_calls", call, "was never made")),
    ...[...made]
      .filter((call) => !expected.has(call))
      .map((call) => broken("same_calls", call, "is not made without a crash")),
  ];
}

function checkOutput(run: RunTrace, expected: RunTrace): Broken[] {
  const seen = canonicalJson([run.status, run.output]);
  const wanted = canonicalJson([expected.status, expected.output]);
  return seen === wanted ? [] : [broken("same_output", run.runId, `ended in ${seen} and not ${wanted}`)];
}

function checkMoney(run: RunTrace, expected: RunTrace, mayExhaust: boolean): Broken[] {
  const { runId, money } = run;
  const { spent, lost, reserved, caps } = money;
  const [corrected, before] = [correctedIn(run), correctedIn(expected)];
  const found: Broken[] = [];
  for (const unit of ["tokens", "nanoUsd", "turns"] as const) {
    const more = lost[unit] + corrected[unit] - before[unit];
    const due = expected.money.spent[unit] + more;
    if (!mayExhaust && spent[unit] !== due) {
      const sum = `${expected.money.spent[unit]} without a crash + ${more} lost or corrected`;
      found.push(broken("spent", runId, `spent ${spent[unit]} ${unit}, not ${sum}`));
    }
    if (reserved[unit] !== 0) found.push(broken("spent", runId, `keeps ${reserved[unit]} ${unit} reserved`));
    const cap = caps[unit];
    if (cap !== null && spent[unit] > cap) {
      found.push(broken("billed", runId, `spent ${spent[unit]} ${unit}, above its cap of ${cap}`));
    }
  }
  return found;
}

/** Returns the usage of unreported calls that became known later (rule B3). */
function correctedIn({ events }: RunTrace): Spend {
  let [tokens, nanoUsd] = [0, 0];
  for (const event of events)
    if (event.type === "usage_corrected") {
      tokens += totalTokens(event.data.usage);
      nanoUsd += toNanoUsd(event.data.usage.costUsd ?? 0);
    }
  return { tokens, nanoUsd, turns: 0 };
}

/** Checks that `run_end` reports the turns and the cost that the ledger contains. */
function checkStatement({ runId, events, money: { spent } }: RunTrace): Broken[] {
  const end = events.at(-1);
  if (end?.type !== "run_end" && end?.type !== "usage_corrected") return [];
  const { turns, costUsd } = end.type === "run_end" ? end.data : end.data.total;
  const isRight = turns === spent.turns && (costUsd === null || toNanoUsd(costUsd) === spent.nanoUsd);
  if (isRight) return [];
  const known = `the ledger ${spent.turns} and ${fromNanoUsd(spent.nanoUsd)}`;
  return [broken("spent", runId, `ends with ${turns} turns and ${costUsd} USD, ${known}`)];
}

/** Checks that `usage` in the commits of an ended run contains exactly the same amounts as its ledger. */
function checkTotals({ runId, events, money: { spent, totalled } }: RunTrace): Broken[] {
  if (!endsRun(events.at(-1))) return [];
  const units = ["tokens", "nanoUsd", "turns"] as const;
  return units
    .filter((unit) => totalled[unit] !== spent[unit])
    .map((unit) =>
      broken("totals", runId, `adds ${totalled[unit]} ${unit} to the totals; it spent ${spent[unit]}`),
    );
}

/** Checks that the ledgers of all runs together contain at least the amount that the server billed. */
function checkBill({ calls, runs }: CaseTrace): Broken[] {
  const known = (unit: keyof Spend): number => runs.reduce((sum, { money }) => sum + money.spent[unit], 0);
  const tokens = calls.reduce((sum, { billed }) => sum + billed.tokens, 0);
  const nanoUsd = calls.reduce((sum, { billed }) => sum + toNanoUsd(billed.usd), 0);
  const found: Broken[] = [];
  if (tokens > known("tokens")) {
    found.push(broken("billed", "the server", `billed ${tokens} tokens, the ledger says ${known("tokens")}`));
  }
  if (nanoUsd > known("nanoUsd")) {
    const detail = `billed ${nanoUsd} nano-dollars, the ledger says ${known("nanoUsd")}`;
    found.push(broken("billed", "the server", detail));
  }
  return found;
}

function checkEvents(
  run: RunTrace,
  expected: RunTrace | undefined,
  { ignore, sideBySide = false }: PromiseOptions,
): Broken[] {
  const { runId, events, chain } = run;
  const found: Broken[] = [];
  const gap = findGap(events);
  if (gap !== undefined) found.push(broken("events", runId, gap));
  if (!chain.ok) found.push(broken("events", runId, `the chain breaks at ${chain.seq}: ${chain.problem}`));
  // The events before `run_fork` are copies of the origin's, which may have ended.
  const own = events.slice(events.findLastIndex(({ type }) => type === "run_fork") + 1);
  const ends = own.filter(({ type }) => type === "run_end").length;
  if (ends !== 1 || !endsRun(events.at(-1))) {
    found.push(broken("events", runId, `has ${ends} run_end and ends with ${events.at(-1)?.type}`));
  }
  const differences =
    expected === undefined ? [] : compareLogs(expected.events, events, { ignore, sideBySide });
  return [...found, ...differences.map((difference) => broken("events", runId, difference))];
}

function checkSeats({ runId, seats, open }: RunTrace): Broken[] {
  const found: Broken[] = [];
  if (seats.most > seats.cap) {
    found.push(broken("seats", runId, `had ${seats.most} seats taken; its cap is ${seats.cap}`));
  }
  if (seats.left.length > 0) found.push(broken("seats", runId, `${seats.left.join(" ")} kept a seat`));
  if (open.length > 0) found.push(broken("finished", runId, `${open.join(" ")} did not end`));
  return found;
}

function broken(promise: CrashPromise, what: RunId | string, detail: string): Broken {
  return { promise, detail: `${what} ${detail}` };
}

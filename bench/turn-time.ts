import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Row } from "./row.ts";
import type { LoopKind, TurnTimes } from "./turn-process.ts";

const rounds = 9;
const program = fileURLToPath(new URL("turn-process.ts", import.meta.url));

interface Round {
  readonly bare: TurnTimes;
  readonly ours: TurnTimes;
}

/**
 * Compares a loop with a bare one: the cost of a turn at N=100, and how it grows to N=1,000. Both run alternately, each in
 * its own process. Ratios are taken within a round, and the median of the rounds is reported.
 */
export function* turnRows(name: string, goal: number, kinds: Record<keyof Round, LoopKind>): Iterable<Row> {
  const measured: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    // The order alternates, because the second process finds a warmer machine.
    const first = round % 2 === 0 ? timesOf(kinds.bare) : undefined;
    const ours = timesOf(kinds.ours);
    measured.push({ bare: first ?? timesOf(kinds.bare), ours });
  }
  const { bare, ours } = middle(measured, (round) => round.ours[100] / round.bare[100]);
  yield {
    name: `${name}, N=100, against the bare loop`,
    value: ours[100],
    unit: "us",
    against: bare[100],
    goal: { atMost: goal },
  };
  yield {
    name: "growth exponent N=100 to 1,000, above the bare loop's",
    value: growthAbove(middle(measured, growthAbove)),
    unit: "",
    against: null,
    goal: { atMost: 0.05 },
  };
}

function timesOf(kind: LoopKind): TurnTimes {
  return JSON.parse(execFileSync(process.execPath, [program, kind], { encoding: "utf8" })) as TurnTimes;
}

function growthAbove({ bare, ours }: Round): number {
  return growthExponent(ours) - growthExponent(bare);
}

/** Time of the whole run. */
function growthExponent(times: TurnTimes): number {
  return 1 + Math.log10(times[1_000] / times[100]);
}

function middle(measured: readonly Round[], by: (round: Round) => number): Round {
  const found = measured.toSorted((one, other) => by(one) - by(other))[measured.length >> 1];
  if (found === undefined) throw new Error("nothing was timed");
  return found;
}

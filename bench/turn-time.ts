import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

const rounds = 7;
/** Turns before anything is measured: a worker runs for hours, and its code is compiled in the first seconds. */
const warmUpTurns = 20_000;
/** Turns measured at once, in as many runs as it takes: the bare loop is done before a clock has moved. */
const measuredTurns = 2_000;

/** The same turns by hand and by us. */
interface Pair {
  readonly bare: () => Promise<unknown>;
  readonly ours: () => Promise<unknown>;
}

class Times {
  readonly bare: number[] = [];
  readonly ours: number[] = [];
}

/** Microseconds of processor time per turn. */
interface PairTime {
  readonly bare: number;
  readonly ours: number;
}

/** Of runs of each length, all by turns: whatever else the machine does, and whatever grows as the process goes on, hits all alike. */
async function timeTurns(counts: readonly number[], runs: (turns: number) => Pair): Promise<PairTime[]> {
  const repeat = async (count: number, run: () => Promise<unknown>): Promise<number> => {
    const took = await cpuMs(async () => {
      for (let done = 0; done < measuredTurns; done += count) await run();
    });
    return (took * 1_000) / measuredTurns;
  };
  const pairs = counts.map((count) => ({ count, ...runs(count), times: new Times() }));
  const warmUp = warmUpTurns / measuredTurns;
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const { count, bare, ours, times } of pairs) {
      times.bare.push(await repeat(count, bare));
      times.ours.push(await repeat(count, ours));
    }
  }
  return pairs.map(({ times }) => ({
    bare: median(times.bare.slice(warmUp)),
    ours: median(times.ours.slice(warmUp)),
  }));
}

/** Of the whole run's time, from N=100 to N=1,000; given times per turn. */
function growthExponent(early: number, late: number): number {
  return 1 + Math.log10(late / early);
}

/** A loop beside its floor: what a turn costs of 100, and how that grows to 1,000. */
export async function* turnRows(
  name: string,
  goal: number,
  runs: (turns: number) => Pair,
): AsyncIterable<Row> {
  const [small, large] = await timeTurns([100, 1_000], runs);
  if (small === undefined || large === undefined) throw new Error("nothing was timed");
  yield {
    name: `${name}, N=100, against the bare loop`,
    value: small.ours,
    unit: "us",
    against: small.bare,
    goal: { atMost: goal },
  };
  yield {
    name: "growth exponent N=100 to 1,000, above the bare loop's",
    value: growthExponent(small.ours, large.ours) - growthExponent(small.bare, large.bare),
    unit: "",
    against: null,
    goal: { atMost: 0.05 },
  };
}

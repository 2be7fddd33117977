import { cpuMs } from "./cpu-time.ts";
import { median, type Row } from "./row.ts";

const rounds = 7;
/** Turns before anything is measured: a worker runs for hours, and its code is compiled in the first seconds. */
const warmUpTurns = 20_000;
/** Turns measured at once, in as many runs as it takes: the bare loop is done before a clock has moved. */
const measuredTurns = 2_000;

/** Microseconds of processor time per turn of both, by turns: whatever else the machine does hits both alike. */
async function timeTurns(
  count: number,
  bareRun: () => Promise<unknown>,
  ownRun: () => Promise<unknown>,
): Promise<{ bare: number; ours: number }> {
  const repeat = async (run: () => Promise<unknown>): Promise<number> => {
    const took = await cpuMs(async () => {
      for (let done = 0; done < measuredTurns; done += count) await run();
    });
    return (took * 1_000) / measuredTurns;
  };
  const bare: number[] = [];
  const ours: number[] = [];
  const warmUp = warmUpTurns / measuredTurns;
  for (let round = 0; round < warmUp + rounds; round++) {
    bare.push(await repeat(bareRun));
    ours.push(await repeat(ownRun));
  }
  return { bare: median(bare.slice(warmUp)), ours: median(ours.slice(warmUp)) };
}

/** Of the whole run's time, from N=100 to N=1,000; given times per turn. */
function growthExponent(early: number, late: number): number {
  return 1 + Math.log10(late / early);
}

/** A loop beside its floor: what a turn costs of 100, and how that grows to 1,000. */
export async function* turnRows(
  name: string,
  goal: number,
  runs: (turns: number) => { readonly bare: () => Promise<unknown>; readonly ours: () => Promise<unknown> },
): AsyncIterable<Row> {
  const timed = (turns: number): ReturnType<typeof timeTurns> => {
    const { bare, ours } = runs(turns);
    return timeTurns(turns, bare, ours);
  };
  const small = await timed(100);
  const large = await timed(1_000);
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

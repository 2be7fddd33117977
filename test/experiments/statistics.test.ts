import { describe, expect, test } from "vitest";
import { estimateMean, seededRandom } from "../../src/experiments/statistics.ts";
import { casesOf, isFull } from "../effort.ts";

/** A distribution of the means of cases, with its own mean. */
interface Distribution {
  readonly mean: number;
  readonly draw: (next: () => number) => number;
}

const distributions: Readonly<Record<string, Distribution>> = {
  "cases that pass in 8 of 10": { mean: 0.8, draw: (next) => (next() < 0.8 ? 1 : 0) },
  "evenly distributed scores": { mean: 0.5, draw: (next) => next() },
  "three trials of cases of different difficulty": {
    mean: 0.7,
    draw: (next) => {
      const chance = 0.4 + 0.6 * next();
      return [0, 0, 0].reduce((sum: number) => sum + (next() < chance ? 1 / 3 : 0), 0);
    },
  },
  "skewed grades of a judge": {
    mean: 0.725,
    draw: (next) => {
      const place = next();
      return [0.05, 0.15, 0.3, 0.6].filter((limit) => place >= limit).length / 4;
    },
  },
  "paired differences": {
    mean: 0.1,
    draw: (next) => {
      const place = next();
      return place < 0.2 ? 1 : place < 0.3 ? -1 : 0;
    },
  },
};

/** The share of simulated experiments whose interval contains the true mean. */
function coverage({ mean, draw }: Distribution, cases: number, experiments: number): number {
  const next = seededRandom(cases * 7 + 1);
  let covered = 0;
  for (let seed = 1; seed <= experiments; seed++) {
    const values = Array.from({ length: cases }, () => draw(next));
    const estimate = estimateMean(values, { resamples: 1_000, seed });
    if (estimate !== undefined && estimate.low <= mean + 1e-12 && estimate.high >= mean - 1e-12) covered += 1;
  }
  return covered / experiments;
}

describe("estimateMean()", () => {
  // All 1,000 experiments of each distribution lie within 93 % and 97 %. `npm test` simulates 200 of one, which vary more.
  const names = isFull ? Object.keys(distributions) : ["three trials of cases of different difficulty"];
  const sizes = isFull ? [60, 200] : [60];
  const [least, most] = isFull ? [0.93, 0.97] : [0.9, 0.99];

  test.each(sizes.flatMap((cases) => names.map((name) => [cases, name] as const)))(
    "the interval of estimateMean() for %i cases contains the true mean in about 95 % of the experiments for %s",
    (cases, name) => {
      const share = coverage(distributions[name] as Distribution, cases, casesOf(1_000, 200));
      expect(share).toBeGreaterThanOrEqual(least);
      expect(share).toBeLessThanOrEqual(most);
    },
  );

  test("estimateMean() returns the same interval for the same values and seed", () => {
    const next = seededRandom(3);
    const values = Array.from({ length: 12 }, () => next());
    expect(estimateMean(values)).toEqual(estimateMean(values));
    expect(estimateMean(values, { seed: 2 })).not.toEqual(estimateMean(values));
  });

  test("the interval of estimateMean() contains the mean, lies between the values, and narrows with more cases", () => {
    const next = seededRandom(5);
    const few = Array.from({ length: 20 }, () => next());
    const many = Array.from({ length: 500 }, () => next());
    const one = estimateMean(few);
    const other = estimateMean(many);
    for (const each of [one, other]) {
      expect(each?.low).toBeLessThan(each?.mean ?? 0);
      expect(each?.high).toBeGreaterThan(each?.mean ?? 1);
      expect(each?.low).toBeGreaterThan(0);
      expect(each?.high).toBeLessThan(1);
    }
    expect((other?.high ?? 0) - (other?.low ?? 0)).toBeLessThan(((one?.high ?? 0) - (one?.low ?? 0)) / 3);
  });

  test("estimateMean() gives equal values an interval without width, and no values no interval", () => {
    expect(estimateMean([0.3, 0.3, 0.3])).toMatchObject({ low: 0.3, high: 0.3, count: 3 });
    expect(estimateMean([1])).toMatchObject({ mean: 1, low: 1, high: 1 });
    expect(estimateMean([])).toBeUndefined();
  });
});

/** A mean with its 95 % confidence interval. */
export interface Estimate {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Number of values. */
  readonly count: number;
}

/** How an interval is computed. */
export interface EstimateOptions {
  /** Number of resamples. Default: 2,000. */
  readonly resamples?: number;
  /** Seed of the random numbers. The same values and the same seed give the same interval. Default: 1. */
  readonly seed?: number;
}

/** Number of cases below which an interval is called unreliable. */
export const reliableFrom = 30;

/** Returns the mean of some values. `NaN` if the list is empty. */
export function meanOf(values: readonly number[]): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/**
 * Estimates the mean of the population from which the values were drawn. The interval is a bootstrap interval: the values are
 * drawn again with replacement, and its ends are percentiles of the means, corrected for bias and skewness (BCa, Efron 1987).
 * Scores are often skewed, and the plain percentiles are then too narrow. Values that are all equal give an interval of width 0. Returns `undefined`
 * if there are no values.
 */
export function estimateMean(
  values: readonly number[],
  { resamples = 2_000, seed = 1 }: EstimateOptions = {},
): Estimate | undefined {
  const count = values.length;
  if (count === 0) return undefined;
  const mean = meanOf(values);
  let squares = 0;
  let cubes = 0;
  for (const value of values) {
    squares += (value - mean) ** 2;
    cubes += (value - mean) ** 3;
  }
  if (squares < 1e-18) return { mean, low: mean, high: mean, count };
  const means = resampledMeans(values, resamples, seed);
  let below = 0;
  for (const each of means) below += each < mean - 1e-12 ? 1 : Math.abs(each - mean) <= 1e-12 ? 0.5 : 0;
  means.sort();
  const bias = quantileOfNormal(Math.min(1 - 1 / resamples, Math.max(1 / resamples, below / resamples)));
  const acceleration = cubes / (6 * squares ** 1.5);
  const at = (z: number): number =>
    quantile(means, shareOfNormal(bias + (bias + z) / (1 - acceleration * (bias + z))));
  return { mean, low: at(-z95), high: at(z95), count };
}

/** The 97.5 % quantile of the normal distribution. */
const z95 = 1.959_963_984_540_054;

function resampledMeans(values: readonly number[], resamples: number, seed: number): Float64Array {
  const next = seededRandom(seed);
  const source = Float64Array.from(values);
  const means = new Float64Array(resamples);
  for (let at = 0; at < resamples; at++) {
    let sum = 0;
    for (let drawn = 0; drawn < source.length; drawn++)
      sum += source[Math.floor(next() * source.length)] as number;
    means[at] = sum / source.length;
  }
  return means;
}

/** Returns the value below which a fraction of the sorted values lies, interpolated between two values. */
function quantile(sorted: Float64Array, share: number): number {
  const place = Math.min(1, Math.max(0, share)) * (sorted.length - 1);
  const low = sorted[Math.floor(place)] as number;
  const high = sorted[Math.ceil(place)] as number;
  return low + (high - low) * (place - Math.floor(place));
}

/**
 * Returns a source of random numbers from 0 (inclusive) to 1 (exclusive) that are determined by a seed
 * (mulberry32).
 */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns the fraction of the normal distribution below `z` (Abramowitz and Stegun 26.2.17; error below 1e-7). */
function shareOfNormal(z: number): number {
  const t = 1 / (1 + 0.231_641_9 * Math.abs(z));
  const tail =
    0.398_942_280_4 *
    Math.exp((-z * z) / 2) *
    t *
    (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
  return z > 0 ? 1 - tail : tail;
}

/**
 * Returns the point below which a fraction of the normal distribution lies. It is found by bisection, which is fast
 * enough because it is needed only once per interval.
 */
function quantileOfNormal(share: number): number {
  let low = -10;
  let high = 10;
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (shareOfNormal(middle) < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

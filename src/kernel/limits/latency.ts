/**
 * The upper bounds of the buckets in which durations of model calls are counted, in milliseconds. Longer calls are
 * counted in a last bucket without a bound. Stores have a column for each bucket, so that a change needs a new
 * stored format.
 */
export const latencyBoundsMs: readonly number[] = Object.freeze([
  100, 150, 200, 300, 400, 600, 800, 1_200, 1_600, 2_400, 3_200, 4_800, 6_400, 9_600, 12_800, 19_200, 25_600,
  38_400, 51_200, 76_800, 102_400, 153_600, 204_800, 307_200,
]);

/** Number of buckets. */
export const latencyBuckets = latencyBoundsMs.length + 1;

/**
 * Number of calls by bucket, as `{ b9: 1 }`. A bucket without calls is absent. The names begin with a letter,
 * because an object with numeric keys would take memory for all lower numbers.
 */
export type LatencyCounts = Readonly<Record<LatencyName, number>>;

/** The name of a bucket. */
export type LatencyName = `b${number}`;

const names: readonly LatencyName[] = Array.from(
  { length: latencyBuckets },
  (_each, bucket) => `b${bucket}` as const,
);

export const noLatency: LatencyCounts = Object.freeze({});

/** Returns the bucket of a duration: the first one whose upper bound is not below the duration. */
export function latencyBucket(durationMs: number): number {
  let bucket = 0;
  for (const bound of latencyBoundsMs) {
    if (durationMs <= bound) return bucket;
    bucket++;
  }
  return bucket;
}

/** Counts one more call of this duration. */
export function countLatency(counts: LatencyCounts, durationMs: number): LatencyCounts {
  const name = names[latencyBucket(durationMs)] as LatencyName;
  return { ...counts, [name]: (counts[name] ?? 0) + 1 };
}

export function addLatency(one: LatencyCounts, other: LatencyCounts): LatencyCounts {
  if (other === noLatency) return one;
  const sum: Record<LatencyName, number> = { ...one };
  for (const name in other) {
    const bucket = name as LatencyName;
    sum[bucket] = (sum[bucket] ?? 0) + (other[bucket] ?? 0);
  }
  return sum;
}

/** Returns the number of calls of every bucket, in the order of the buckets. */
export function latencyList(counts: LatencyCounts): readonly number[] {
  return names.map((name) => counts[name] ?? 0);
}

/**
 * Estimates the duration in milliseconds that this share of the calls does not exceed. `share` is a number such as
 * 0.95. The estimate assumes that the calls of a bucket are spread evenly over it. For a call in the last bucket it
 * returns the lower bound of that bucket. `null` if there are no calls.
 */
export function latencyQuantile(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= 0) return null;
  let before = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count <= 0 || before + count < share * total) {
      before += count;
      continue;
    }
    const from = latencyBoundsMs[bucket - 1] ?? 0;
    const to = latencyBoundsMs[bucket] ?? from;
    return Math.round(from + ((share * total - before) / count) * (to - from));
  }
  return latencyBoundsMs.at(-1) ?? null;
}

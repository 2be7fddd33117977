/**
 * The upper bounds of the buckets in which durations of model calls are counted, in milliseconds. The last bucket, which has no
 * bound, holds what takes longer. Stores have a column for each bucket, so a change needs a new stored format.
 */
export const latencyBoundsMs: readonly number[] = Object.freeze([
  100, 150, 200, 300, 400, 600, 800, 1_200, 1_600, 2_400, 3_200, 4_800, 6_400, 9_600, 12_800, 19_200, 25_600,
  38_400, 51_200, 76_800, 102_400, 153_600, 204_800, 307_200,
]);

/** Number of buckets. */
export const latencyBuckets = latencyBoundsMs.length + 1;

/**
 * Number of calls by bucket, as `{ b9: 1 }`. A bucket without a call is absent. The names are no numbers, because an object with
 * numbered members takes the memory of all lower numbers.
 */
export type LatencyCounts = Readonly<Record<LatencyName, number>>;

/** The name of a bucket. */
export type LatencyName = `b${number}`;

const names: readonly LatencyName[] = Array.from(
  { length: latencyBuckets },
  (_each, bucket) => `b${bucket}` as const,
);

export const noLatency: LatencyCounts = Object.freeze({});

/** The bucket of a duration: the first one whose bound is not below it. */
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

/** The number of calls of every bucket, in their order. */
export function latencyList(counts: LatencyCounts): readonly number[] {
  return names.map((name) => counts[name] ?? 0);
}

/**
 * The duration in milliseconds that this share of the calls does not exceed, such as 0.95: an estimate within the bucket, which
 * assumes that its calls are spread evenly. A call in the last bucket took at least its lower bound, which is returned. `null` if
 * there is no call.
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

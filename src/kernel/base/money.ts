import { Fault } from "./fault.ts";

/**
 * Dollars are counted in whole nano-dollars, so that sums are exact and a cap can be compared with. One nano-dollar is
 * a thousandth of the price of a token at 1 USD per million. Exact up to about 9 million USD.
 */
const nanoPerUsd = 1e9;

/** For what is spent or reserved: rounds up. */
export function toNanoUsd(usd: number): number {
  const nanoUsd = requireUsd(usd) * nanoPerUsd;
  return Math.max(0, Math.ceil(nanoUsd - noiseOf(nanoUsd)));
}

/** The same for a bound, which may be as large as it likes: what is more than can be counted is the most that can. */
export function toNanoUsdBound(usd: number): number {
  return usd * nanoPerUsd > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : toNanoUsd(usd);
}

/** For a limit: rounds down. */
export function toNanoUsdLimit(usd: number): number {
  const nanoUsd = requireUsd(usd) * nanoPerUsd;
  return Math.floor(nanoUsd + noiseOf(nanoUsd));
}

export function fromNanoUsd(nanoUsd: number): number {
  return nanoUsd / nanoPerUsd;
}

/** Counted in nano-dollars: 0.1 + 0.2 is 0.3. */
export function addUsd(one: number, other: number): number {
  return fromNanoUsd(toNanoUsd(one) + toNanoUsd(other));
}

export function requireUsd(usd: number): number {
  if (!Number.isFinite(usd) || usd < 0 || usd * nanoPerUsd > Number.MAX_SAFE_INTEGER) {
    throw new Fault("invalid_argument", `${usd} is not an amount of USD: it must be from 0 to 9 million`);
  }
  return usd;
}

/** Above the noise of a product of two floats, below half a nano-dollar for amounts up to a million USD. */
function noiseOf(nanoUsd: number): number {
  return Math.max(1e-4, nanoUsd * Number.EPSILON * 2);
}

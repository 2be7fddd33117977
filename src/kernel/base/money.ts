import { Fault } from "./fault.ts";

/**
 * Money is counted in whole nano-dollars, so that sums are exact and can be compared with caps. One nano-dollar is a
 * thousandth of the price of a token at 1 USD per million tokens. Amounts are exact up to about 9 million USD.
 */
const nanoPerUsd = 1e9;

/** Converts an amount that is spent or reserved; rounds up. */
export function toNanoUsd(usd: number): number {
  const nanoUsd = requireUsd(usd) * nanoPerUsd;
  return Math.max(0, Math.ceil(nanoUsd - noiseOf(nanoUsd)));
}

/** Converts an upper bound; rounds up, and limits the result to the largest amount that can be counted. */
export function toNanoUsdBound(usd: number): number {
  return usd * nanoPerUsd > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : toNanoUsd(usd);
}

/** Converts a limit; rounds down. */
export function toNanoUsdLimit(usd: number): number {
  const nanoUsd = requireUsd(usd) * nanoPerUsd;
  return Math.floor(nanoUsd + noiseOf(nanoUsd));
}

export function fromNanoUsd(nanoUsd: number): number {
  return nanoUsd / nanoPerUsd;
}

/** Adds two amounts in nano-dollars, so that 0.1 + 0.2 is exactly 0.3. */
export function addUsd(one: number, other: number): number {
  return fromNanoUsd(toNanoUsd(one) + toNanoUsd(other));
}

export function requireUsd(usd: number): number {
  if (!Number.isFinite(usd) || usd < 0 || usd * nanoPerUsd > Number.MAX_SAFE_INTEGER) {
    throw new Fault("invalid_argument", `invalid amount ${usd} USD: expected a number from 0 to 9 million`);
  }
  return usd;
}

/**
 * The tolerance for rounding: more than the error of a product of two floats, less than half a nano-dollar for amounts
 * up to a million USD.
 */
function noiseOf(nanoUsd: number): number {
  return Math.max(1e-4, nanoUsd * Number.EPSILON * 2);
}

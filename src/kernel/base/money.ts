import { Fault } from "./fault.ts";

/**
 * Number of nano-dollars in one dollar. Money is counted in whole nano-dollars, so that sums are exact and can be
 * compared with caps. At 1 USD per million tokens, a token costs 1,000 nano-dollars. Amounts are exact up to about
 * 9 million USD.
 */
const nanoPerUsd = 1e9;

/** Converts an amount in USD that is spent or reserved to nano-dollars and rounds up. */
export function toNanoUsd(usd: number): number {
  const nanoUsd = requireUsd(usd) * nanoPerUsd;
  return Math.max(0, Math.ceil(nanoUsd - noiseOf(nanoUsd)));
}

/**
 * Converts an upper bound in USD to nano-dollars, rounds up and limits it to the largest amount that can be
 * counted.
 */
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

/** Adds two amounts in USD by way of nano-dollars, so that 0.1 + 0.2 is exactly 0.3. */
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
 * Returns the tolerance for rounding errors. It is larger than the error of a product of two floats, and smaller
 * than half a nano-dollar for amounts up to a million USD.
 */
function noiseOf(nanoUsd: number): number {
  return Math.max(1e-4, nanoUsd * Number.EPSILON * 2);
}

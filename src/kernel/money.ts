import { Fault } from "./fault.ts";

/**
 * Dollars are counted in whole nano-dollars, so that sums are exact and a cap can be compared with. One nano-dollar is
 * a thousandth of the price of a token at 1 USD per million. Exact up to about 9 million USD.
 */
const nanoPerUsd = 1e9;
/** Far below one nano-dollar, far above the noise of a product of two floats. */
const noise = 1e-4;

/** For what is spent or reserved: rounds up. */
export function toNanoUsd(usd: number): number {
  return Math.max(0, Math.ceil(checkedUsd(usd) * nanoPerUsd - noise));
}

/** For a limit: rounds down. */
export function toNanoUsdLimit(usd: number): number {
  return Math.floor(checkedUsd(usd) * nanoPerUsd + noise);
}

export function fromNanoUsd(nanoUsd: number): number {
  return nanoUsd / nanoPerUsd;
}

function checkedUsd(usd: number): number {
  if (!Number.isFinite(usd) || usd < 0 || usd * nanoPerUsd > Number.MAX_SAFE_INTEGER) {
    throw new Fault("invalid_argument", `${usd} is not an amount of USD: it must be from 0 to 9 million`);
  }
  return usd;
}

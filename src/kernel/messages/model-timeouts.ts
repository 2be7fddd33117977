import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";

/**
 * Maximum times of one attempt of a model call, in milliseconds. An attempt that exceeds one of them is aborted, charged
 * as unreported (B3) and retried like any other fault of the provider. `null` sets no limit.
 */
export interface ModelTimeouts {
  /** Time until the first chunk of a streamed answer. Default: 300_000. */
  readonly firstChunkMs: number | null;
  /** Time between two chunks of a streamed answer. Default: 120_000. */
  readonly chunkMs: number | null;
  /** Time until the whole answer has arrived, streamed or not. Default: 1_800_000. */
  readonly totalMs: number | null;
}

const defaultModelTimeouts: ModelTimeouts = Object.freeze({
  firstChunkMs: 300_000,
  chunkMs: 120_000,
  totalMs: 1_800_000,
});

const knownOptions = optionNames<ModelTimeouts>({ firstChunkMs: true, chunkMs: true, totalMs: true });

/** Returns the default timeouts changed by `changes`, validated. `owner` names the options in the error. */
export function modelTimeouts(owner: string, changes: Partial<ModelTimeouts> = {}): ModelTimeouts {
  checkOptions(`modelTimeouts of ${owner}`, changes, knownOptions);
  for (const [name, value] of Object.entries(changes) as [string, unknown][]) {
    const isLimit = value === null || (typeof value === "number" && Number.isFinite(value) && value > 0);
    if (value !== undefined && !isLimit)
      throw new Fault(
        "invalid_argument",
        `invalid modelTimeouts.${name} ${describeValue(value)} of ${owner}: expected milliseconds above 0, or null for no limit`,
      );
  }
  return mergeModelTimeouts(defaultModelTimeouts, changes);
}

/** Returns `base` with the timeouts that `changes` contains. */
export function mergeModelTimeouts(base: ModelTimeouts, changes: Partial<ModelTimeouts>): ModelTimeouts {
  const { firstChunkMs = base.firstChunkMs, chunkMs = base.chunkMs, totalMs = base.totalMs } = changes;
  return { firstChunkMs, chunkMs, totalMs };
}

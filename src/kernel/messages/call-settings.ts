import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames, readProperty } from "../base/option-check.ts";
import type { ModelRequest, ToolChoice } from "./model.ts";

/**
 * Settings for the model calls of one invocation. They take precedence over the settings of the model
 * (`withSettings()`). A setting that the provider does not know has no effect or is refused by the provider.
 */
export interface CallSettings extends Pick<
  ModelRequest,
  | "temperature"
  | "topP"
  | "topK"
  | "seed"
  | "presencePenalty"
  | "frequencyPenalty"
  | "maxOutputTokens"
  | "toolChoice"
> {}

const names = optionNames<CallSettings>({
  temperature: true,
  topP: true,
  topK: true,
  seed: true,
  presencePenalty: true,
  frequencyPenalty: true,
  maxOutputTokens: true,
  toolChoice: true,
});

/** The settings that control how the model samples. */
export const samplingNames = [
  "temperature",
  "topP",
  "topK",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
] as const satisfies readonly (keyof CallSettings)[];

type NumericSetting = Exclude<keyof CallSettings, "toolChoice">;

/** What each numeric setting accepts, in words and as a test. */
const numbers: Readonly<Record<NumericSetting, readonly [string, (value: number) => boolean]>> = {
  temperature: ["a number from 0", (value: number) => value >= 0],
  topP: ["a number from 0 to 1", (value: number) => value >= 0 && value <= 1],
  topK: ["an integer from 1", (value: number) => Number.isSafeInteger(value) && value >= 1],
  seed: ["an integer", Number.isSafeInteger],
  presencePenalty: ["a number", Number.isFinite],
  frequencyPenalty: ["a number", Number.isFinite],
  maxOutputTokens: ["an integer from 1", (value: number) => Number.isSafeInteger(value) && value >= 1],
};

/**
 * Returns a copy of settings without absent values. Throws `invalid_argument` for an unknown setting and for an invalid
 * value, before a call is paid. `owner` is the function or run that the settings are for.
 */
export function callSettings(owner: string, settings: CallSettings): CallSettings {
  checkOptions(`settings of ${owner}`, settings, names);
  const copy: Record<string, unknown> = {};
  for (const name of names) {
    const value = readProperty(settings, name);
    if (value === undefined) continue;
    copy[name] =
      name === "toolChoice"
        ? readToolChoice("settings.toolChoice", owner, value)
        : numeric(owner, name as NumericSetting, value);
  }
  return Object.freeze(copy);
}

function numeric(owner: string, name: NumericSetting, value: unknown): number {
  const [expected, isValid] = numbers[name];
  if (typeof value === "number" && Number.isFinite(value) && isValid(value)) return value;
  throw new Fault(
    "invalid_argument",
    `invalid settings.${name} ${describeValue(value)} of ${owner}: expected ${expected}`,
  );
}

/** Returns a tool choice. Throws `invalid_argument` for another value. `place` and `owner` name it in the error. */
export function readToolChoice(place: string, owner: string, value: unknown): ToolChoice {
  if (value === "auto" || value === "none" || value === "required") return value;
  const toolName = readProperty(value, "toolName");
  if (typeof toolName === "string") return Object.freeze({ toolName });
  throw new Fault(
    "invalid_argument",
    `invalid ${place} ${describeValue(value)} of ${owner}: expected "auto", "none", "required" or { toolName }`,
  );
}

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

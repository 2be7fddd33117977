import { invalidOption, is, optionTable, spelledAs, type OptionKinds } from "../base/option-table.ts";
import { readProperty } from "../base/read-property.ts";
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

/** Valid values of the settings of a model call. */
export const callSettingKinds = {
  temperature: is.number({ from: 0, finite: true }),
  topP: is.number({ from: 0, to: 1 }),
  topK: is.integer({ from: 1 }),
  seed: is.integer({}),
  presencePenalty: is.number({ finite: true }),
  frequencyPenalty: is.number({ finite: true }),
  maxOutputTokens: is.integer({ from: 1 }),
  toolChoice: is.checkedBy(readToolChoice),
} satisfies OptionKinds<CallSettings>;

const callSettingTable = optionTable(callSettingKinds);
const settingNames = Object.keys(callSettingKinds) as (keyof CallSettings)[];

/** Returns a hint for the error when a setting is passed as an option of its own: it belongs into `settings`. */
export function ofSettings(option: string): string | undefined {
  const name = spelledAs(option, settingNames);
  return name && `use \`settings: { ${name} }\` of invoke(), or withSettings(model, { ${name} })`;
}

/** The settings that control how the model samples. */
export const samplingNames = [
  "temperature",
  "topP",
  "topK",
  "seed",
  "presencePenalty",
  "frequencyPenalty",
] as const satisfies readonly (keyof CallSettings)[];

/**
 * Checks settings and returns a copy without absent values. Throws `invalid_argument` for an unknown setting and
 * for an invalid value, before any call is paid. `owner` names the function or run in the error.
 */
export function callSettings(owner: string, settings: CallSettings): CallSettings {
  callSettingTable.read(`settings of ${owner}`, settings);
  const copy: Record<string, unknown> = {};
  // The names are those of the table, because settings may be getters of a class.
  for (const name of settingNames) if (settings[name] !== undefined) copy[name] = settings[name];
  const { toolChoice } = settings;
  if (typeof toolChoice === "object") copy["toolChoice"] = Object.freeze({ toolName: toolChoice.toolName });
  return Object.freeze(copy);
}

/**
 * Checks a tool choice and returns it. Throws `invalid_argument` for another value. `option` and `owner` name it in
 * the error.
 */
export function readToolChoice(value: unknown, option: string, owner: string): ToolChoice {
  if (value === "auto" || value === "none" || value === "required") return value;
  const toolName = readProperty(value, "toolName");
  if (typeof toolName === "string") return Object.freeze({ toolName });
  throw invalidOption(owner, option, value, '"auto", "none", "required" or { toolName }');
}

/**
 * Time limits of one attempt of a model call, in milliseconds. The runtime aborts an attempt that exceeds one of
 * them, charges it as unreported (B3) and retries it like any other fault of the provider. `null` sets no limit.
 */
export interface ModelTimeouts {
  /** Time until the first chunk of a streamed answer. Default: 300_000. */
  readonly firstChunkMs: number | null;
  /** Time between two chunks of a streamed answer. Default: 120_000. */
  readonly chunkMs: number | null;
  /** Time until the whole answer has arrived, streamed or not. Default: 1_800_000. */
  readonly totalMs: number | null;
}

const timeoutTable = optionTable({
  firstChunkMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 300_000 }),
  chunkMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 120_000 }),
  totalMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 1_800_000 }),
} satisfies OptionKinds<ModelTimeouts>);

/** Returns the default timeouts with the given changes, after a check. `owner` names the options in the error. */
export function modelTimeouts(owner: string, changes: Partial<ModelTimeouts> = {}): ModelTimeouts {
  return timeoutTable.read(`modelTimeouts of ${owner}`, changes);
}

/** Returns `base` with the timeouts that `changes` contains. */
export function mergeModelTimeouts(base: ModelTimeouts, changes: Partial<ModelTimeouts>): ModelTimeouts {
  const { firstChunkMs = base.firstChunkMs, chunkMs = base.chunkMs, totalMs = base.totalMs } = changes;
  return { firstChunkMs, chunkMs, totalMs };
}

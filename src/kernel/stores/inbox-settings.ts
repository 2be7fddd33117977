import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { checkOptions, optionNames } from "../base/option-check.ts";

/** How often a message that an activation handed back is delivered again, and after which delay. */
export interface InboxSettings {
  /** I4: a message that was handed back this often becomes a dead letter. Default: 5. */
  readonly maxDeliveries: number;
  /** Delay after the first time a message is handed back. Each further delay is four times as long. Default: 1_000. */
  readonly baseDelayMs: number;
  /** Upper bound of the delay. Default: 300_000. */
  readonly maxDelayMs: number;
}

const defaultInboxSettings: InboxSettings = Object.freeze({
  maxDeliveries: 5,
  baseDelayMs: 1_000,
  maxDelayMs: 300_000,
});

const knownOptions = optionNames<InboxSettings>({ maxDeliveries: true, baseDelayMs: true, maxDelayMs: true });

/**
 * Merges the settings with the defaults. Throws `invalid_argument` for an invalid number: NaN would retry a message
 * forever, or never.
 */
export function inboxSettings(given: Partial<InboxSettings> = {}): InboxSettings {
  checkOptions("the inbox of a store", given, knownOptions);
  const settings = { ...defaultInboxSettings, ...given };
  const { maxDeliveries, baseDelayMs, maxDelayMs } = settings;
  const isCount = maxDeliveries === Number.POSITIVE_INFINITY || Number.isSafeInteger(maxDeliveries);
  require("maxDeliveries", maxDeliveries, isCount && maxDeliveries >= 1, "an integer from 1, or Infinity");
  for (const [name, value] of Object.entries({ baseDelayMs, maxDelayMs }))
    require(name, value, Number.isFinite(value) && value >= 0, "milliseconds from 0");
  return settings;
}

/** I6: the delay before a message that was handed back this often is delivered again. */
export function redeliveryDelayMs(
  deliveries: number,
  { baseDelayMs, maxDelayMs }: Pick<InboxSettings, "baseDelayMs" | "maxDelayMs">,
): number {
  // 0 * Infinity would be NaN.
  return baseDelayMs === 0 ? 0 : Math.min(maxDelayMs, baseDelayMs * 4 ** (deliveries - 1));
}

function require(name: string, value: unknown, isRight: boolean, rule: string): void {
  if (!isRight)
    throw new Fault("invalid_argument", `inbox.${name} is ${describeValue(value)}: it must be ${rule}`);
}

import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";

/** What becomes of a message that is handed back: how often it is tried, and how long it is left alone before it is tried again. */
export interface InboxSettings {
  /** Handed back so often, it is a dead letter (I4). */
  readonly maxDeliveries: number;
  /** After the first time; then each time four times as long. */
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

const defaultMailSettings: InboxSettings = Object.freeze({
  maxDeliveries: 5,
  baseDelayMs: 1_000,
  maxDelayMs: 300_000,
});

/** The defaults with what was given instead, looked at: with a number that is none, a message would be tried for ever, or never. */
export function inboxSettings(given: Partial<InboxSettings> = {}): InboxSettings {
  const settings = { ...defaultMailSettings, ...given };
  const { maxDeliveries, baseDelayMs, maxDelayMs } = settings;
  const isCount = maxDeliveries === Number.POSITIVE_INFINITY || Number.isSafeInteger(maxDeliveries);
  require("maxDeliveries", maxDeliveries, isCount && maxDeliveries >= 1, "an integer from 1, or Infinity");
  for (const [name, value] of Object.entries({ baseDelayMs, maxDelayMs }))
    require(name, value, Number.isFinite(value) && value >= 0, "milliseconds from 0");
  return settings;
}

/** I6: so long is a message left alone that was handed back so often. */
export function redeliveryDelayMs(
  deliveries: number,
  { baseDelayMs, maxDelayMs }: Pick<InboxSettings, "baseDelayMs" | "maxDelayMs">,
): number {
  // By zero, infinitely often is not a number.
  return baseDelayMs === 0 ? 0 : Math.min(maxDelayMs, baseDelayMs * 4 ** (deliveries - 1));
}

function require(name: string, value: unknown, isRight: boolean, rule: string): void {
  if (!isRight)
    throw new Fault("invalid_argument", `inbox.${name} is ${describeValue(value)}: it must be ${rule}`);
}

import {
  redeliveryDelayMs,
  type Delivery,
  type InboxSettings,
  type Message,
  type RunId,
} from "../../../kernel/index.ts";

/**
 * I2: `BEHIND` is a message that waits for an earlier message of its line. I1: an acknowledged message keeps only its
 * id.
 */
export const MessageState = Object.freeze({ WAITING: 0, BEHIND: 1, TAKEN: 2, DEAD: 3, ACKNOWLEDGED: 4 });

export interface MessageRow {
  readonly deliveries: number;
  readonly redelivered: number;
  readonly notBefore: number;
  readonly runId: RunId | null;
  readonly body: string;
}

/** A message with its line. */
export interface PlacedRow {
  readonly id: number;
  readonly line: string;
  readonly deliveries: number;
}

/** What a message becomes that is handed back. */
export interface HandedBack {
  readonly state: number;
  readonly deliveries: number;
  readonly notBefore: number;
  /** Place among the dead messages. `null` if the message is delivered again. */
  readonly died: number | null;
}

/** I4: `died` is the place that the message gets if it was delivered too often. */
export function handedBack(
  row: PlacedRow,
  settings: InboxSettings,
  { at, died }: { readonly at: number | undefined; readonly died: number },
): HandedBack {
  const deliveries = row.deliveries + 1;
  if (deliveries >= settings.maxDeliveries)
    return { state: MessageState.DEAD, deliveries, notBefore: 0, died };
  const notBefore = at === undefined ? 0 : at + redeliveryDelayMs(deliveries, settings);
  return { state: MessageState.BEHIND, deliveries, notBefore, died: null };
}

export function deliveryOf({ deliveries, redelivered, notBefore, runId, body }: MessageRow): Delivery {
  return {
    message: JSON.parse(body) as Message,
    deliveries,
    ...(notBefore > 0 && { notBefore }),
    ...(runId !== null && { runId }),
    ...(redelivered > 0 && { redelivered }),
  };
}

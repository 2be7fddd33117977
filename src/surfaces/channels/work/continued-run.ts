import { offeredAmount, type RunHandle, type Store } from "../../../kernel/index.ts";
import { hasOrders } from "../../http/obeyed-orders.ts";
import { shortDigest } from "../../http/short-digest.ts";
import { lackOf, type TopUpName } from "../../view/top-up-offer.ts";

/** A top-up with which a run that stopped at a limit continues. */
export interface OfferedTopUp {
  /** The task whose limit was reached. */
  readonly taskId: string;
  readonly name: TopUpName;
  readonly amount: number;
  /** The sequence number (`seq`) after the end of the run to which the offer belongs. */
  readonly fromSeq: number;
}

/**
 * B8: returns the amount that the person of an ended run may add so that it continues. `undefined` if that is
 * nothing.
 */
export async function offeredTopUp(run: RunHandle): Promise<OfferedTopUp | undefined> {
  const { status, error } = await run.result();
  const lack = lackOf({ status, failure: error, budget: null });
  if (lack === null) return undefined;
  const { taskId, name } = lack;
  const amount = offeredAmount(lack, (await run.topUpLeft())[name]);
  return amount > 0 ? { taskId, name, amount, fromSeq: await seqAfterEnd(run) } : undefined;
}

/** The seq after the last end of a run. */
export async function seqAfterEnd(run: RunHandle): Promise<number> {
  let seq = 0;
  for await (const event of run.events({ types: ["run_end"], follow: false }))
    if (event.type === "run_end") seq = event.seq + 1;
  return seq;
}

/** Returns the id of the message that represents the continuation of a run after one of its ends. */
export function continuationId(runId: string, fromSeq: number): string {
  return `top-up-${shortDigest(runId, String(fromSeq))}`;
}

/**
 * Adds the offered amount. Does nothing if the run was continued since the offer, also by this top-up before a
 * crash. If the process dies inside `topUp`, the amount may count as used although it was not added; it is never
 * added twice.
 */
export async function addOffered(
  run: RunHandle,
  { taskId, name, amount, fromSeq }: OfferedTopUp,
  store: Pick<Store, "mailbox">,
): Promise<void> {
  if (await hasOrders(store, run.runId)) return;
  const types = ["budget_top_up", "run_resume"] as const;
  let isContinued = false;
  for await (const { type } of run.events({ types, fromSeq, follow: false }))
    isContinued ||= type === "budget_top_up" || type === "run_resume";
  if (!isContinued) await run.topUp({ [name]: amount }, taskId, { limited: true });
}

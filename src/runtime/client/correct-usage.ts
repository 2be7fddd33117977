import {
  describeValue,
  Fault,
  fromNanoUsd,
  is,
  optionTable,
  priceUsage,
  toNanoUsd,
  type Clock,
  type LostCharge,
  type OptionKinds,
  type PriceTable,
  type ReportedUsage,
  type RunId,
  type UnknownPrice,
  type Usage,
} from "../../kernel/index.ts";
import { correctionMail } from "../journal/correction-mail.ts";
import type { RunStore } from "./run-store.ts";
import { StoredRun } from "./stored-run.ts";

const count = is.integer({ from: 0 });
const usageTable = optionTable({
  inputTokens: is.integer({ from: 0, required: true }),
  outputTokens: is.integer({ from: 0, required: true }),
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
  costUsd: is.number({ from: 0, finite: true }),
} satisfies OptionKinds<ReportedUsage>);

/** A caller who knows the cost of a call that ended without an answer. */
export interface Corrector {
  readonly store: RunStore;
  readonly clock: Clock;
  readonly prices: PriceTable;
  readonly unknownPrice: UnknownPrice;
  readonly runId: RunId;
  /** The user in whose name the correction is sent. */
  readonly by: string;
}

/**
 * B3: sends the usage of an unreported call to its run. The next worker that reads the mailbox of the run replaces
 * the charge, even if the run has ended. Only a call that is charged as unreported is accepted. Costs O(commits of
 * the run).
 */
export async function correctUsage(
  corrector: Corrector,
  call: string,
  reported: ReportedUsage,
): Promise<void> {
  const { store, clock, unknownPrice, runId, by } = corrector;
  if (typeof call !== "string" || call === "")
    throw new Fault(
      "invalid_argument",
      `invalid call ${describeValue(call)} of correctUsage(): expected the reservationId of a budget_lost event`,
    );
  const usage = usageTable.read("correctUsage()", reported);
  const { ledger } = await new StoredRun(runId, store, unknownPrice).readState();
  const lost = ledger.lostCalls[call];
  if (lost === undefined) throw await notLost(corrector, call);
  const costUsd = await costOf(corrector, call, lost, usage);
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage;
  const corrected: Usage = {
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    reasoningTokens,
    costUsd,
  };
  const mail = correctionMail({ runId, from: by, at: clock.now() }, call, corrected);
  if (!(await store.mailbox.put(mail))) throw correctedBefore(runId, call);
}

/** Returns the cost of the call, at the price of the time at which it was charged as unreported. */
async function costOf(
  { store, prices, runId }: Corrector,
  call: string,
  { label }: LostCharge,
  usage: ReportedUsage,
): Promise<number | null> {
  if (usage.costUsd !== undefined) return usage.costUsd;
  if (label === undefined) return null;
  await prices.load?.();
  let at = 0;
  for await (const event of store.events.read(runId))
    if (event.type === "budget_lost" && event.data.reservationId === call) at = event.at;
  const { provider, modelId } = label;
  const { inputTokens } = usage;
  const cost = priceUsage(prices.find({ provider, modelId, inputTokens, at }), usage);
  return cost === null ? null : fromNanoUsd(toNanoUsd(cost));
}

async function notLost({ store, runId }: Corrector, call: string): Promise<Fault> {
  for await (const event of store.events.read(runId))
    if (event.type === "usage_corrected" && event.data.reservationId === call)
      return correctedBefore(runId, call);
  return new Fault(
    "not_found",
    `run ${runId} has no unreported call ${describeValue(call)}: use the reservationId of a budget_lost event of the run`,
    { details: { runId, call } },
  );
}

function correctedBefore(runId: RunId, call: string): Fault {
  return new Fault(
    "already_exists",
    `the usage of call ${describeValue(call)} of run ${runId} was corrected before: only the first correction is used`,
    { details: { runId, call } },
  );
}

import { Fault, toNanoUsd, type Mail, type Usage } from "../../kernel/index.ts";

/**
 * B3: creates the mail that corrects the charge of an unreported call. P1: its id follows from the call, so that
 * the first correction counts. Throws if the ledger cannot count the usage, because no owner of the run could ever
 * consume such a mail.
 */
export function correctionMail(head: Pick<Mail, "runId" | "from" | "at">, call: string, usage: Usage): Mail {
  const { inputTokens, outputTokens, costUsd } = usage;
  const tokens = inputTokens + outputTokens;
  if (!Number.isSafeInteger(tokens))
    throw new Fault(
      "invalid_argument",
      `invalid usage of call ${call}: ${inputTokens} input and ${outputTokens} output tokens are more than can be counted; state the tokens of this call`,
    );
  if (costUsd !== null) toNanoUsd(costUsd);
  return { ...head, id: `usage ${call}`, body: { type: "usage", call, usage } };
}

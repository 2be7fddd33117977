import type { TaskId } from "../../src/kernel/index.ts";
import type { TopUpName } from "../../src/surfaces/view/top-up-offer.ts";
import { errorText, post } from "../api/client.ts";
import { isOffline } from "../api/connection.ts";
import { rootId } from "../model/money.ts";
import type { RunModel } from "../model/run-model.ts";

/**
 * Whether orders are disabled. They are sent to the live run, so they are disabled in a replay, and while the
 * server does not answer.
 */
export function areOrdersOff({ playhead }: Pick<RunModel, "playhead">): boolean {
  return playhead.value !== null || isOffline.value;
}

/** What is added to the limits of a run or of an agent. */
export type TopUpAmounts = { -readonly [Name in TopUpName]?: number };

export async function topUp(
  { runId }: Pick<RunModel, "runId">,
  add: TopUpAmounts,
  taskId: string = rootId,
): Promise<void> {
  const amounts = Object.values(add);
  if (amounts.length === 0 || amounts.some((amount) => !(amount > 0)))
    throw new Error("Enter an amount above 0, such as 1.");
  await post("/api/runs/{runId}/top-up", { params: { runId }, body: { ...add, taskId } });
}

export async function pause({ runId }: RunModel): Promise<void> {
  await post("/api/runs/{runId}/pause", { params: { runId } });
}

export async function resume({ runId }: RunModel): Promise<void> {
  await post("/api/runs/{runId}/resume", { params: { runId } });
}

/** Sends words to an agent of a run. It reads them before its next turn. */
export async function steer(
  { runId }: Pick<RunModel, "runId">,
  input: string,
  taskId: TaskId = rootId,
): Promise<void> {
  await post("/api/runs/{runId}/steer", { params: { runId }, body: { input, taskId } });
}

/** Sends words to an agent of a run. It reads them when it would otherwise end. */
export async function followUp({ runId }: RunModel, input: string, taskId: TaskId): Promise<void> {
  await post("/api/runs/{runId}/follow-up", { params: { runId }, body: { input, taskId } });
}

/**
 * Withdraws an input that an agent has not read. Returns a description of the result, and the text of the input if
 * it was withdrawn.
 */
export async function withdrawInput(
  { runId }: Pick<RunModel, "runId">,
  inputId: string,
  agentId: string,
  text: string,
): Promise<[words: string, text?: string]> {
  try {
    const answer = await post("/api/runs/{runId}/withdraw-input", { params: { runId }, body: { inputId } });
    if (!("isWithdrawn" in answer))
      return ["No worker has answered yet. The input is taken back when one does, unless it was read."];
    return answer.isWithdrawn ? ["Taken back.", text] : [`Too late: ${agentId} has read it, or has ended.`];
  } catch (error) {
    return [errorText(error)];
  }
}

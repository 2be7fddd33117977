import type { AgentId, LedgerCommand, ReserveCommand, TaskId } from "../../../../kernel/index.ts";

/**
 * The reservation of a model call without member names. The task and the agent are absent for the root task with its
 * own agent.
 */
type StoredReserve = readonly [
  id: string,
  attempt: number,
  inputTokens: number,
  inputCostUsd: number | null,
  maxTokens: number,
  usdPerToken: number | null,
  turns: number,
  provider: string,
  modelId: string,
  taskId?: TaskId,
  agentId?: AgentId,
];
type StoredSettle = readonly [id: string, tokens: number, costUsd: number | null];

/** A list is distinguished by its length. Any other command is stored unchanged. */
export type StoredBooking = StoredReserve | StoredSettle | LedgerCommand;

/** The task to which the commands belong if they do not name one. */
export interface Bookkeeper {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}

export function encodeBooking(command: LedgerCommand, root: Bookkeeper): StoredBooking {
  if (command.type === "settle") return [command.id, command.tokens, command.costUsd];
  if (command.type !== "reserve") return command;
  const { id, taskId, attempt, input, output, turns, label } = command;
  if (turns === undefined || label === undefined || output.minTokens !== undefined) return command;
  const { agentId, provider, modelId } = label;
  const { maxTokens, usdPerToken } = output;
  const isOwn = taskId === root.taskId && agentId === root.agentId;
  return isOwn
    ? [id, attempt, input.tokens, input.costUsd, maxTokens, usdPerToken, turns, provider, modelId]
    : [
        id,
        attempt,
        input.tokens,
        input.costUsd,
        maxTokens,
        usdPerToken,
        turns,
        provider,
        modelId,
        taskId,
        agentId,
      ];
}

export function decodeBooking(stored: StoredBooking, root: Bookkeeper): LedgerCommand {
  if (!isBrief(stored)) return stored;
  return stored.length === 3
    ? { type: "settle", id: stored[0], tokens: stored[1], costUsd: stored[2] }
    : decodeReserve(stored, root);
}

function decodeReserve(
  [
    id,
    attempt,
    tokens,
    costUsd,
    maxTokens,
    usdPerToken,
    turns,
    provider,
    modelId,
    taskId,
    agentId,
  ]: StoredReserve,
  root: Bookkeeper,
): ReserveCommand {
  return {
    type: "reserve",
    id,
    taskId: taskId ?? root.taskId,
    attempt,
    input: { tokens, costUsd },
    output: { maxTokens, usdPerToken },
    turns,
    label: { agentId: agentId ?? root.agentId, provider, modelId },
  };
}

function isBrief(stored: StoredBooking): stored is StoredReserve | StoredSettle {
  return Array.isArray(stored);
}

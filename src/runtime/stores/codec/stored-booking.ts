import type { AgentId, LedgerCommand, ReserveCommand, TaskId } from "../../../kernel/index.ts";

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
  day: string,
  provider: string,
  modelId: string,
  taskId?: TaskId,
  agentId?: AgentId,
];
type StoredSettle = readonly [
  id: string,
  tokens: number,
  costUsd: number | null,
  outputTokens: number,
  cachedTokens: number,
];

/** Length of a `StoredSettle`. A `StoredReserve` is longer. */
const settleLength = 5;

/** A list is distinguished by its length. Any other command is stored unchanged. */
export type StoredBooking = StoredReserve | StoredSettle | LedgerCommand;

/** The task to which the commands belong if they do not name one. */
export interface Bookkeeper {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}

export function encodeBooking(command: LedgerCommand, root: Bookkeeper): StoredBooking {
  if (command.type === "settle") return encodeSettle(command);
  if (command.type !== "reserve") return command;
  const { id, taskId, attempt, input, output, turns, label, day } = command;
  if (turns === undefined || label === undefined || day === undefined || output.minTokens !== undefined)
    return command;
  const { agentId, provider, modelId } = label;
  const { maxTokens, usdPerToken } = output;
  const isOwn = taskId === root.taskId && agentId === root.agentId;
  return isOwn
    ? [id, attempt, input.tokens, input.costUsd, maxTokens, usdPerToken, turns, day, provider, modelId]
    : [
        id,
        attempt,
        input.tokens,
        input.costUsd,
        maxTokens,
        usdPerToken,
        turns,
        day,
        provider,
        modelId,
        taskId,
        agentId,
      ];
}

export function decodeBooking(stored: StoredBooking, root: Bookkeeper): LedgerCommand {
  if (!isBrief(stored)) return stored;
  return stored.length === settleLength ? decodeSettle(stored) : decodeReserve(stored, root);
}

type SettleCommand = Extract<LedgerCommand, { readonly type: "settle" }>;

function encodeSettle(command: SettleCommand): StoredBooking {
  const { id, tokens, costUsd, outputTokens, cachedTokens } = command;
  return outputTokens === undefined || cachedTokens === undefined
    ? command
    : [id, tokens, costUsd, outputTokens, cachedTokens];
}

function decodeSettle([id, tokens, costUsd, outputTokens, cachedTokens]: StoredSettle): SettleCommand {
  return { type: "settle", id, tokens, costUsd, outputTokens, cachedTokens };
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
    day,
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
    day,
  };
}

function isBrief(stored: StoredBooking): stored is StoredReserve | StoredSettle {
  return Array.isArray(stored);
}

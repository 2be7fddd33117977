import {
  hourText,
  type AgentId,
  type LedgerCommand,
  type ReserveCommand,
  type TaskId,
} from "../../../kernel/index.ts";

/**
 * The stored form of a model call's reservation, without member names. The task and the agent are absent for the
 * root task with its own agent. `day` is the UTC hour, such as `2026-11-16T13`; formats before 19 store only the
 * day.
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
  durationMs?: number,
];

/** Maximum length of a `StoredSettle`. A `StoredReserve` is longer. */
const settleLength = 6;

/**
 * The stored form of a ledger command. Two frequent commands are lists, which differ in length. Any other command
 * is stored unchanged.
 */
export type StoredBooking = StoredReserve | StoredSettle | LedgerCommand;

/** The task to which commands belong that do not name a task. */
export interface Bookkeeper {
  readonly taskId: TaskId;
  readonly agentId: AgentId;
}

export function encodeBooking(command: LedgerCommand, root: Bookkeeper): StoredBooking {
  if (command.type === "settle") return encodeSettle(command);
  if (command.type !== "reserve") return command;
  const { id, taskId, attempt, input, output, turns, label, day, hour } = command;
  if (turns === undefined || label === undefined || day === undefined || output.minTokens !== undefined)
    return command;
  const { agentId, provider, modelId } = label;
  const { maxTokens, usdPerToken } = output;
  const when = hour === undefined ? day : hourText(day, hour);
  const isOwn = taskId === root.taskId && agentId === root.agentId;
  return isOwn
    ? [id, attempt, input.tokens, input.costUsd, maxTokens, usdPerToken, turns, when, provider, modelId]
    : [
        id,
        attempt,
        input.tokens,
        input.costUsd,
        maxTokens,
        usdPerToken,
        turns,
        when,
        provider,
        modelId,
        taskId,
        agentId,
      ];
}

export function decodeBooking(stored: StoredBooking, root: Bookkeeper): LedgerCommand {
  if (!isBrief(stored)) return stored;
  return isSettle(stored) ? decodeSettle(stored) : decodeReserve(stored, root);
}

type SettleCommand = Extract<LedgerCommand, { readonly type: "settle" }>;

function encodeSettle(command: SettleCommand): StoredBooking {
  const { id, tokens, costUsd, outputTokens, cachedTokens, durationMs } = command;
  if (outputTokens === undefined || cachedTokens === undefined) return command;
  return durationMs === undefined
    ? [id, tokens, costUsd, outputTokens, cachedTokens]
    : [id, tokens, costUsd, outputTokens, cachedTokens, durationMs];
}

function decodeSettle(stored: StoredSettle): SettleCommand {
  const [id, tokens, costUsd, outputTokens, cachedTokens, durationMs] = stored;
  const command: SettleCommand = { type: "settle", id, tokens, costUsd, outputTokens, cachedTokens };
  return durationMs === undefined ? command : { ...command, durationMs };
}

function isSettle(stored: StoredReserve | StoredSettle): stored is StoredSettle {
  return stored.length <= settleLength;
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
    when,
    provider,
    modelId,
    taskId,
    agentId,
  ]: StoredReserve,
  root: Bookkeeper,
): ReserveCommand {
  const [day = when, hour] = when.split("T");
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
    ...(hour !== undefined && { hour: Number(hour) }),
  };
}

function isBrief(stored: StoredBooking): stored is StoredReserve | StoredSettle {
  return Array.isArray(stored);
}

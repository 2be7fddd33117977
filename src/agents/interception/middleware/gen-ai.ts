import type { Metric } from "../../../kernel/index.ts";

/**
 * Names of OpenTelemetry's GenAI semantic conventions, which are still in development and are therefore defined only
 * here. Attributes without a standard name start with `reeve.`.
 */
export const genAi = Object.freeze({
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agentName: "gen_ai.agent.name",
  agentId: "gen_ai.agent.id",
  agentDescription: "gen_ai.agent.description",
  agentVersion: "gen_ai.agent.version",
  workflowName: "gen_ai.workflow.name",
  conversation: "gen_ai.conversation.id",
  requestModel: "gen_ai.request.model",
  requestMaxTokens: "gen_ai.request.max_tokens",
  requestTemperature: "gen_ai.request.temperature",
  requestTopP: "gen_ai.request.top_p",
  requestTopK: "gen_ai.request.top_k",
  requestSeed: "gen_ai.request.seed",
  requestPresencePenalty: "gen_ai.request.presence_penalty",
  requestFrequencyPenalty: "gen_ai.request.frequency_penalty",
  requestStopSequences: "gen_ai.request.stop_sequences",
  requestStream: "gen_ai.request.stream",
  outputType: "gen_ai.output.type",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  tokenType: "gen_ai.token.type",
  toolName: "gen_ai.tool.name",
  toolDescription: "gen_ai.tool.description",
  toolCallId: "gen_ai.tool.call.id",
  toolType: "gen_ai.tool.type",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  systemInstructions: "gen_ai.system_instructions",
  errorType: "error.type",
  runId: "reeve.run.id",
  taskId: "reeve.task.id",
  tenantId: "reeve.tenant.id",
  status: "reeve.status",
  turns: "reeve.turns",
  /** Whether a call repeats one that failed or was lost. */
  isAgain: "reeve.again",
  stepName: "reeve.step.name",
  /** What a task waited for, and what ended the wait. */
  waitFor: "reeve.wait.for",
  wokenBy: "reeve.wait.by",
  costUsd: "reeve.cost_usd",
});

export type Operation = "invoke_agent" | "invoke_workflow" | "chat" | "execute_tool";

const secondsUpTo = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const tokensUpTo = Array.from({ length: 14 }, (_, power) => 4 ** power);

/** Duration metric of each operation, in seconds. */
export const durations: Readonly<Record<Operation, Metric>> = Object.freeze({
  invoke_agent: {
    name: "gen_ai.invoke_agent.duration",
    unit: "s",
    boundaries: secondsUpTo.map((bound) => bound * 16),
  },
  invoke_workflow: {
    name: "gen_ai.workflow.duration",
    unit: "s",
    boundaries: secondsUpTo.map((bound) => bound * 16),
  },
  chat: { name: "gen_ai.client.operation.duration", unit: "s", boundaries: secondsUpTo },
  execute_tool: { name: "gen_ai.execute_tool.duration", unit: "s", boundaries: secondsUpTo },
});

export const tokenUsage: Metric = Object.freeze({
  name: "gen_ai.client.token.usage",
  unit: "{token}",
  boundaries: tokensUpTo,
});

export const cost: Metric = Object.freeze({
  name: "reeve.client.cost",
  unit: "USD",
  description: "Cost of model calls whose price is known",
});

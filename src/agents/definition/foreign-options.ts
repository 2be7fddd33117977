import type { ForeignNames } from "../../kernel/index.ts";

/** What replaces the options with which other frameworks limit the loop of an agent. */
const loop: ForeignNames = {
  maxSteps: "use `maxTurns` of the agent",
  maxIterations: "use `maxTurns` of the agent",
  recursionLimit: "use `maxTurns` of the agent",
  maxRetries: "use `retry: { maxRetries }` of the agent, or of openRuntime()",
};

/** What replaces the options with which other frameworks describe the answer. */
const answer: ForeignNames = {
  schema: "use `output` of invoke(): agent.invoke(input, { output: schema })",
  outputSchema: "use `output` of invoke(): agent.invoke(input, { output: schema })",
  outputType: "use `output` of invoke(): agent.invoke(input, { output: schema })",
  responseFormat: "use `output` of invoke(): agent.invoke(input, { output: schema })",
  experimental_output: "use `output` of invoke(): agent.invoke(input, { output: schema })",
};

/** What replaces the options with which other frameworks observe the steps of an agent. */
const observers: ForeignNames = {
  onStepFinish: "use `hooks`: hooks.on(HookEvent.STEP_END, ...)",
  onFinish: "use `hooks`: hooks.on(HookEvent.RUN_END, ...)",
  onError: "use `hooks`: hooks.on(HookEvent.RUN_END, ...), or `onError` of openRuntime()",
  experimental_telemetry: "use `telemetry` of the agent",
};

function ofModel(name: string): string {
  return `use withSettings(model, { ${name}: ... }) as the model of the agent`;
}

/** Options that other frameworks have and `Agent` has not, each with what to use instead. */
export const foreignAgentOptions: ForeignNames = {
  ...loop,
  ...answer,
  ...observers,
  system: "use `instructions`",
  systemPrompt: "use `instructions`",
  prompt: "pass the prompt to invoke(): agent.invoke(prompt); the system prompt is `instructions`",
  input: "pass the input to invoke(): agent.invoke(input)",
  messages: "pass the messages to invoke(): agent.invoke(messages); the system prompt is `instructions`",
  output: "use `output` of invoke(): agent.invoke(input, { output: schema })",
  abortSignal: "use `signal` of invoke(): agent.invoke(input, { signal })",
  signal: "use `signal` of invoke(): agent.invoke(input, { signal })",
  handoffs: "use `subAgents`",
  agents: "use `subAgents`",
  workers: "use `subAgents`",
  mcpServers: "use `tools: await mcpServers({ ... }).tools()`, with mcpServers of reeve/mcp",
  inputGuardrails: "use `guardrails`",
  outputGuardrails: "use `guardrails`",
  checkpointer: 'use openRuntime({ store: "sqlite:PATH" }) and pass the runtime to invoke()',
  id: "use `name`",
  runtime: "pass the runtime to invoke(): agent.invoke(input, { runtime })",
  store: 'use openRuntime({ store: "sqlite:PATH" }) and pass the runtime to invoke()',
  sessionId: "pass it to invoke(): agent.invoke(input, { sessionId })",
  userId: "pass it to invoke(): agent.invoke(input, { userId })",
  timeoutMs: "use `budget: { deadlineMs }`, or `timeoutMs` of invoke()",
  maxAgents: "use `spawnBudget: { maxAgents }`",
  maxCostUsd: "use `budget: { maxCostUsd }`",
  apiKey: 'use namedModel("provider/model", { apiKey }) as the model of the agent',
  baseURL: 'use namedModel("provider/model", { baseUrl }) as the model of the agent',
  baseUrl: 'use namedModel("provider/model", { baseUrl }) as the model of the agent',
  temperature: ofModel("temperature"),
  maxTokens: ofModel("maxOutputTokens"),
  maxOutputTokens: ofModel("maxOutputTokens"),
  stopSequences: ofModel("stopSequences"),
  toolChoice: ofModel("toolChoice"),
  providerOptions: ofModel("providerOptions"),
  modelSettings: "use withSettings(model, { ... }) as the model of the agent",
};

/** Options that calls of other frameworks have and `invoke` has not, each with what to use instead. */
export const foreignInvokeOptions: ForeignNames = {
  ...loop,
  ...answer,
  ...observers,
  model: "use `model` of the agent, or agent.with({ model }).invoke(input)",
  tools: "use `tools` of the agent, or agent.with({ tools }).invoke(input)",
  system: "use `instructions` of the agent",
  instructions: "use `instructions` of the agent, or agent.with({ instructions }).invoke(input)",
  stopWhen: "use `stopWhen` of the agent, or agent.with({ stopWhen }).invoke(input)",
  prepareStep: "use `prepareStep` of the agent, or agent.with({ prepareStep }).invoke(input)",
  prompt: "pass the prompt as the first argument: agent.invoke(prompt)",
  messages: "pass the messages as the first argument: agent.invoke(messages)",
  store: 'use openRuntime({ store: "sqlite:PATH" }) and the option `runtime`',
  checkpointer: 'use openRuntime({ store: "sqlite:PATH" }) and the option `runtime`',
  stream: "use agent.stream(input)",
  session: "use `sessionId`",
  maxCostUsd: "use `budget: { maxCostUsd }`",
  maxAgents: "use `spawnBudget: { maxAgents }`",
  maxTurns: "use `maxTurns` of the agent, or `budget: { maxTurns }` for the whole run",
  abortSignal: "use `signal`",
  threadId: "use `sessionId`",
  thread_id: "use `sessionId`",
  conversationId: "use `sessionId`",
  resourceId: "use `userId`",
  configurable: "use `sessionId` and `userId`",
  temperature: "use `settings: { temperature }`",
  topP: "use `settings: { topP }`",
  topK: "use `settings: { topK }`",
  seed: "use `settings: { seed }`",
  maxTokens: "use `settings: { maxOutputTokens }`, or `budget: { maxTokens }` for the whole run",
  maxOutputTokens: "use `settings: { maxOutputTokens }`",
  toolChoice: "use `settings: { toolChoice }`",
  experimental_context: "use `context`, which tools receive as context",
};

import {
  checkChoice,
  checkList,
  checkMethods,
  checkOptions,
  describeValue,
  executionBudget,
  Fault,
  modelTimeouts,
  optionNames,
  retrySettings,
  spawnBudget,
  type ForeignNames,
} from "../../kernel/index.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { foreignAgentOptions } from "./foreign-options.ts";
import { checkExtensions, checkGuardrail, checkToolList } from "../base/part-check.ts";

/** The names of the options of an agent. */
const agentOptionNames = optionNames<AgentDefinition>({
  name: true,
  key: true,
  description: true,
  model: true,
  models: true,
  modelTimeouts: true,
  retry: true,
  instructions: true,
  tools: true,
  architecture: true,
  maxTurns: true,
  maxToolCallsPerTurn: true,
  maxParallelToolCalls: true,
  budget: true,
  spawnBudget: true,
  subAgents: true,
  ephemeral: true,
  hooks: true,
  guardrails: true,
  permissions: true,
  extensions: true,
  toolHooks: true,
  compaction: true,
  middleware: true,
  stopHooks: true,
  reviewers: true,
  memory: true,
  history: true,
  telemetry: true,
  steering: true,
  followUps: true,
  inbox: true,
  version: true,
  prepareStep: true,
  stopWhen: true,
  repairToolCall: true,
});

/**
 * Refuses options that a kind of agent does not have, such as `tools` of a flow. `removed` are the options of `Agent`
 * that the kind lacks, `added` its own, and `foreign` the names of other libraries for its own options.
 */
export function checkKindOptions(
  kind: string,
  options: object,
  removed: readonly (keyof AgentDefinition)[],
  added: readonly string[] = [],
  foreign: ForeignNames = {},
): void {
  const names = new Set([...agentOptionNames, ...added]);
  for (const name of removed) names.delete(name);
  checkOptions(kind, options, names, { ...foreignAgentOptions, ...foreign });
}

/** The methods that each part of an agent must have, and how to create such a part. */
const parts: readonly (readonly [
  Exclude<keyof AgentDefinition, "model" | "models">,
  readonly string[],
  string?,
])[] = [
  ["hooks", ["observe", "settled"], "use new HookManager(); hooks of the tool gate are the option toolHooks"],
  ["toolHooks", ["preTool", "postTool"], "use toolHooks(); a HookManager is the option hooks"],
  ["permissions", ["check"], "use permissions({ ... })"],
  ["memory", ["blocks", "recall", "remember"], "use openMemory({ path })"],
  ["history", ["read", "append"]],
  ["telemetry", ["startSpan", "count", "measure"]],
];

/** The options that are lists, each with an entry for the error. */
const lists: readonly (readonly [Exclude<keyof AgentDefinition, "model" | "models">, string])[] = [
  ["subAgents", "agent"],
  ["guardrails", "guardrail"],
  ["extensions", "extension"],
  ["stopHooks", "{ name, shouldContinue }"],
  ["reviewers", "reviewer({ ... })"],
  ["ephemeral", "source"],
];

const drainModes: readonly string[] = ["one", "all"];
const inboxModes: readonly string[] = ["each", "together"];

/** Refuses options that an agent does not know and parts that it could not use, before a run costs anything. */
export function checkAgentOptions(options: Omit<AgentDefinition, "model" | "models">): void {
  const { name } = (options ?? {}) as Partial<AgentDefinition>;
  const agent = typeof name === "string" ? `agent ${name}` : "Agent";
  checkOptions(agent, options, agentOptionNames, foreignAgentOptions);
  checkToolList(agent, options.tools);
  checkChoice(agent, "inbox", options.inbox, inboxModes);
  checkChoice(agent, "steering", options.steering, drainModes);
  checkChoice(agent, "followUps", options.followUps, drainModes);
  checkFunctions(agent, options);
  for (const [part, methods, fix] of parts) checkMethods(`${part} of ${agent}`, options[part], methods, fix);
  for (const [option, entry] of lists)
    checkList(`${option} of ${agent}`, options[option], `use ${option}: [${entry}]`);
  for (const each of options.stopHooks ?? []) checkMethods(`stop hook of ${agent}`, each, ["shouldContinue"]);
  for (const each of options.ephemeral ?? [])
    checkMethods(`ephemeral source of ${agent}`, each, ["messages"]);
  checkExtensions(options.extensions ?? [], agent);
  for (const each of options.guardrails ?? []) checkGuardrail(each, agent);
  checkLimits(agent, options);
}

/** The options that are integers from 1. */
const counts = ["maxTurns", "maxToolCallsPerTurn", "maxParallelToolCalls"] as const;

/** B2: refuses invalid limits, budgets, timeouts and retries of an agent, before a run costs anything. */
function checkLimits(agent: string, options: Omit<AgentDefinition, "model" | "models">): void {
  for (const option of counts) {
    const { [option]: value = 1 } = options;
    if (!Number.isSafeInteger(value) || value < 1)
      throw new Fault(
        "invalid_argument",
        `invalid ${option} ${value} of ${agent}: expected an integer from 1`,
      );
  }
  // Callers without types may pass `budget: null` for no budget.
  executionBudget(options.budget ?? {});
  if (options.spawnBudget !== undefined) spawnBudget(options.spawnBudget);
  if (options.modelTimeouts !== undefined) modelTimeouts(agent, options.modelTimeouts);
  if (options.retry !== undefined) retrySettings(options.retry, agent);
}

function checkFunctions(
  agent: string,
  {
    prepareStep,
    stopWhen,
    repairToolCall,
  }: Pick<AgentDefinition, "prepareStep" | "stopWhen" | "repairToolCall">,
): void {
  const options = {
    prepareStep: [prepareStep ?? []].flat(),
    stopWhen: [stopWhen ?? []].flat(),
    repairToolCall: [repairToolCall ?? []].flat(),
  };
  for (const [option, values] of Object.entries<readonly unknown[]>(options))
    for (const value of values)
      if (typeof value !== "function")
        throw new Fault(
          "invalid_argument",
          `invalid ${option} ${describeValue(value)} of ${agent}: expected a function${option === "stopWhen" ? ", such as hasToolCall(name)" : ""}`,
        );
}

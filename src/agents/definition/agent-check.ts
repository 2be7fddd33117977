import {
  checkMethods,
  executionBudget,
  flowKinds,
  invalidOption,
  is,
  modelTimeouts,
  ofSettings,
  optionTable,
  readAllowedChanges,
  readProperty,
  retrySettings,
  spawnBudget,
  spelledAs,
  submitKinds,
  type AllowedChanges,
  type Extension,
  type OptionKind,
  type OptionKinds,
  type OptionTable,
  readTopUp,
} from "../../kernel/index.ts";
import type { AgentDefinition } from "./agent-definition.ts";
import { checkExtensions, checkToolList, gateKinds, partsLike } from "../base/part-check.ts";

/** A function, or a list of functions. */
function functions(hint?: string): OptionKind<never> {
  return is.checkedBy((value: unknown, option, owner) => {
    for (const each of [value ?? []].flat())
      if (typeof each !== "function") throw invalidOption(owner, option, each, "a function", hint);
  });
}

const extensionList = partsLike("extensions", "extension");

/** The options of an agent. An invalid one is refused before a run costs anything. */
export const agentKinds = {
  name: is.any,
  key: is.any,
  description: is.any,
  model: is.any,
  models: is.any,
  modelTimeouts: is.checkedBy((changes, _option, owner) => modelTimeouts(owner, changes)),
  retry: is.checkedBy((changes, _option, owner) => retrySettings(changes, owner)),
  instructions: is.checkedBy((value: unknown, option, owner) => {
    if (value === null || typeof value === "string" || typeof value === "function") return;
    if (typeof readProperty(value, "build") !== "function")
      throw invalidOption(owner, option, value, "a text, a function, or an object with build()");
  }),
  tools: is.checkedBy((tools, _option, owner) => checkToolList(owner, tools)),
  architecture: is.any,
  maxTurns: is.integer({ from: 1 }),
  maxToolCallsPerTurn: is.integer({ from: 1 }),
  maxParallelToolCalls: is.integer({ from: 1 }),
  // B2. Callers without types may pass `budget: null` for no budget.
  budget: is.checkedBy((budget: Parameters<typeof executionBudget>[0] | null) =>
    executionBudget(budget ?? {}),
  ),
  onBudget: is.choice(["ask", "end"]),
  topUp: is.checkedBy((topUp, option, owner) => readTopUp(topUp, `${option} of ${owner}`)),
  allowedChanges: is.checkedBy((allowed: AllowedChanges, option, owner) =>
    readAllowedChanges(allowed, `${option} of ${owner}`),
  ),
  input: is.checkedBy((schema: unknown, option, owner) => {
    if (typeof schema !== "object" && typeof schema !== "function")
      throw invalidOption(owner, option, schema, "a schema", "use a schema of zod, or a JSON Schema");
  }),
  spawnBudget: is.checkedBy(spawnBudget),
  subAgents: partsLike("subAgents", "agent"),
  isolation: is.any,
  ephemeral: partsLike("ephemeral", "source", (each, owner) =>
    checkMethods(`ephemeral source of ${owner}`, each, ["messages"]),
  ),
  hooks: is.withMethods(
    ["observe", "settled"],
    "use new HookManager(); hooks of the tool gate are the option toolHooks",
  ),
  guardrails: gateKinds.guardrails,
  permissions: gateKinds.permissions,
  extensions: is.checkedBy((extensions: readonly Extension[] | null, option, owner) => {
    extensionList.check?.(extensions, option, owner);
    checkExtensions(extensions ?? [], owner);
  }),
  toolHooks: gateKinds.toolHooks,
  compaction: is.any,
  middleware: is.any,
  stopHooks: partsLike("stopHooks", "{ name, shouldContinue }", (each, owner) =>
    checkMethods(`stop hook of ${owner}`, each, ["shouldContinue"]),
  ),
  reviewers: partsLike("reviewers", "reviewer({ ... })"),
  memory: is.withMethods(["blocks", "recall", "remember"], "use openMemory({ path })"),
  history: is.withMethods(["read", "append"]),
  telemetry: is.withMethods(["startSpan", "count", "measure"]),
  steering: is.choice(["one", "all"]),
  followUps: is.choice(["one", "all"]),
  inbox: is.choice(["each", "together"]),
  ...flowKinds,
  version: is.any,
  prepareStep: functions(),
  stopWhen: functions("use a function such as hasToolCall(name)"),
  repairToolCall: functions(),
} satisfies OptionKinds<AgentDefinition>;

/** The options of a call. */
const callNames = [
  ...Object.keys(submitKinds),
  "output",
  "signal",
  "runtime",
  "timeoutMs",
  "onApproval",
  "compactionInstructions",
];

/** Says how to pass an option of a call. */
function ofCall(option: string): string | undefined {
  const name = spelledAs(option, callNames);
  return name === undefined ? ofSettings(option) : `pass it to invoke(): agent.invoke(input, { ${name} })`;
}

const agentTable = optionTable(agentKinds, ofCall);

/** Refuses options that an agent does not know and values that it could not use, before a run costs anything. */
export function checkAgentOptions(options: Omit<AgentDefinition, "model" | "models" | "isolation">): void {
  const { name } = (options ?? {}) as Partial<AgentDefinition>;
  agentTable.read(typeof name === "string" ? `agent ${name}` : "Agent", options);
}

/**
 * The names of the options of a kind of agent: those of `Agent` without `removed`, such as `tools` of a flow, and its own,
 * `added`. `Agent` checks the values.
 */
export function kindTable(
  removed: readonly (keyof AgentDefinition)[],
  added: Readonly<Record<string, OptionKind>> = {},
): OptionTable {
  const names = Object.keys(agentKinds).filter((name) => !(removed as readonly string[]).includes(name));
  return optionTable({ ...Object.fromEntries(names.map((name) => [name, is.any])), ...added }, ofCall);
}

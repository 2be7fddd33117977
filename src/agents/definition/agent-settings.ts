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

/** Creates an option kind with a default value. The default `null` says that the part is not configured. */
function withDefault<const Value>(
  kind: OptionKind<never>,
  value: Value,
): Omit<OptionKind<never>, "default"> & { readonly default: Value } {
  return { ...kind, default: value };
}

/** The options of an agent and their defaults. An invalid option throws before a run costs anything. */
export const agentKinds = {
  name: is.any,
  key: is.any,
  description: withDefault(is.any, ""),
  model: is.any,
  models: is.any,
  modelTimeouts: is.checkedBy((changes, _option, owner) => modelTimeouts(owner, changes)),
  retry: is.checkedBy((changes, _option, owner) => retrySettings(changes, owner)),
  instructions: withDefault(
    is.checkedBy((value: unknown, option, owner) => {
      if (value === null || typeof value === "string" || typeof value === "function") return;
      if (typeof readProperty(value, "build") !== "function")
        throw invalidOption(owner, option, value, "a text, a function, or an object with build()");
    }),
    "",
  ),
  tools: is.checkedBy((tools, _option, owner) => checkToolList(owner, tools)),
  architecture: is.any,
  maxTurns: is.integer({ from: 1, default: 25 }),
  maxToolCallsPerTurn: is.integer({ from: 1, default: 128 }),
  maxParallelToolCalls: is.integer({ from: 1 }),
  // B2. Callers without types may pass `budget: null` for no budget.
  budget: withDefault(
    is.checkedBy((budget: Parameters<typeof executionBudget>[0] | null) => executionBudget(budget ?? {})),
    {},
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
  subAgents: withDefault(partsLike("subAgents", "agent"), []),
  isolation: withDefault(is.any, null),
  ephemeral: withDefault(
    partsLike("ephemeral", "source", (each, owner) =>
      checkMethods(`ephemeral source of ${owner}`, each, ["messages"]),
    ),
    [],
  ),
  hooks: withDefault(
    is.withMethods(
      ["observe", "settled"],
      "use new HookManager(); hooks of tool calls are the option toolHooks",
    ),
    null,
  ),
  guardrails: withDefault(gateKinds.guardrails, []),
  permissions: withDefault(gateKinds.permissions, null),
  extensions: withDefault(
    is.checkedBy((extensions: readonly Extension[] | null, option, owner) => {
      extensionList.check?.(extensions, option, owner);
      checkExtensions(extensions ?? [], owner);
    }),
    [],
  ),
  toolHooks: withDefault(gateKinds.toolHooks, null),
  compaction: is.any,
  middleware: withDefault(is.any, []),
  stopHooks: withDefault(
    partsLike("stopHooks", "{ name, shouldContinue }", (each, owner) =>
      checkMethods(`stop hook of ${owner}`, each, ["shouldContinue"]),
    ),
    [],
  ),
  reviewers: withDefault(partsLike("reviewers", "reviewer({ ... })"), []),
  memory: withDefault(is.withMethods(["blocks", "recall", "remember"], "use openMemory({ path })"), null),
  history: withDefault(is.withMethods(["read", "append"]), null),
  telemetry: withDefault(is.withMethods(["startSpan", "count", "measure"]), null),
  steering: is.choice(["one", "all"], { default: "one" }),
  followUps: is.choice(["one", "all"], { default: "one" }),
  inbox: is.choice(["each", "together"], { default: "each" }),
  ...flowKinds,
  version: is.any,
  prepareStep: withDefault(functions(), null),
  stopWhen: withDefault(functions("use a function such as hasToolCall(name)"), null),
  repairToolCall: withDefault(functions(), null),
} satisfies OptionKinds<{ readonly [Name in keyof AgentDefinition]: AgentDefinition[Name] | null }>;

type AgentKinds = typeof agentKinds;

/** The options that have a default. */
type Defaulted = {
  [Name in keyof AgentKinds]: AgentKinds[Name] extends { readonly default: unknown } ? Name : never;
}[keyof AgentKinds];

/** The definition of an agent with its defaults. */
export type AgentSettings = Omit<AgentDefinition, Defaulted> & {
  readonly [Name in Defaulted]:
    | NonNullable<AgentDefinition[Name]>
    | Extract<AgentKinds[Name]["default"], null>;
};

const defaults: Readonly<Record<string, unknown>> = Object.fromEntries(
  Object.entries<OptionKind>(agentKinds).flatMap(([name, kind]) =>
    "default" in kind ? [[name, kind.default]] : [],
  ),
);

/** Adds the defaults of the options that are absent. Callers without types may pass `null` for the default. */
export function withDefaults(definition: AgentDefinition): AgentSettings {
  const given = Object.entries(definition).filter(
    ([name, value]) => value !== undefined && (value !== null || !(name in defaults)),
  );
  return { ...defaults, ...Object.fromEntries(given) } as unknown as AgentSettings;
}

/** Whether a setting differs from its default. */
export function isConfigured(settings: AgentSettings, name: keyof AgentSettings): boolean {
  const value = settings[name];
  return value !== undefined && value !== defaults[name];
}

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

/** Throws for options that an agent does not know and for values that it cannot use, before a run costs anything. */
export function checkAgentOptions(options: Omit<AgentDefinition, "model" | "models" | "isolation">): void {
  const { name } = (options ?? {}) as Partial<AgentDefinition>;
  agentTable.read(typeof name === "string" ? `agent ${name}` : "Agent", options);
}

/**
 * Returns the option names of a kind of agent: those of `Agent` without `removed`, such as `tools` for a flow, and
 * the additional names in `added`. `Agent` checks the values.
 */
export function kindTable(
  removed: readonly (keyof AgentDefinition)[],
  added: Readonly<Record<string, OptionKind>> = {},
): OptionTable {
  const names = Object.keys(agentKinds).filter((name) => !(removed as readonly string[]).includes(name));
  return optionTable({ ...Object.fromEntries(names.map((name) => [name, is.any])), ...added }, ofCall);
}

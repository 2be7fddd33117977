import type { Fields, ValuesOf } from "./fields.ts";

const limits = {
  maxTokens: { type: "integer", description: "Maximum number of tokens, input and output.", trust: "wider" },
  maxCostUsd: { type: "number", description: "Maximum cost in dollars.", trust: "wider" },
  maxTurns: { type: "integer", description: "Maximum number of turns of all agents.", trust: "wider" },
  deadlineMs: { type: "integer", description: "Maximum time in milliseconds.", trust: "wider" },
} as const satisfies Fields;

/** Fields for limits that a project can set only with trust, because they would not replace a limit of the user. */
const ownLimits = {
  maxTokens: { ...limits.maxTokens, trust: "always" },
  maxCostUsd: { ...limits.maxCostUsd, trust: "always" },
  maxTurns: { ...limits.maxTurns, trust: "always" },
} as const satisfies Fields;

/**
 * The keys that `settings.json` and the front matter of an agent have in common. A key in the settings is the
 * default for all agents; the keys of a group are combined one by one.
 */
export const sharedFields = {
  contextWindow: {
    type: "integer",
    description:
      "Size of the model's context window in tokens, for a model whose window is not known. It belongs to the model beside it.",
    trust: "always",
  },
  maxTurns: {
    type: "integer",
    description: "Maximum number of turns of an agent that names none. Default: 25.",
    trust: "wider",
    usual: 25,
  },
  budget: {
    type: "group",
    isPolicy: true,
    description: "Limits of a run. An absent limit is no limit.",
    fields: limits,
  },
  retry: {
    type: "group",
    canBeOff: true,
    description: "How a failed model call is retried. false: it is not retried.",
    fields: {
      maxRetries: {
        type: "integer",
        description: "Maximum number of attempts after the first. Default: 3.",
        trust: "wider",
        usual: 3,
      },
      baseDelayMs: {
        type: "number",
        description:
          "Time before the first retry in milliseconds. It doubles with each retry. Default: 2000.",
      },
      jitter: {
        type: "number",
        description: "Fraction of the time that is added at random. Default: 0.",
      },
      maxDelayMs: {
        type: "number",
        description: "Maximum time before a retry in milliseconds. Default: 120000.",
      },
    },
  },
  compaction: {
    type: "group",
    canBeOff: true,
    description:
      "How a session that has outgrown the context window is summarised. false: it is not summarised.",
    fields: {
      reserveTokens: {
        type: "integer",
        description: "Tokens of the context window that stay free. Default: 8192.",
      },
      keepRecentTokens: {
        type: "integer",
        description: "Tokens of the newest messages that a summary leaves as they are. Default: 16384.",
      },
      budget: {
        type: "group",
        description: "Limits of the run that writes the summary. Default: 3 turns.",
        fields: ownLimits,
      },
    },
  },
} as const satisfies Fields;

/**
 * The keys of the front matter of an agent. The table decides which keys are read, how they are checked, which
 * values are restricted for an agent that the user has not accepted, and which are passed to `Agent`. A key that is
 * an option of `Agent` needs only its row here.
 */
export const agentFields = {
  name: { type: "text", description: "Name of the agent: that of its file." },
  description: {
    type: "text",
    description: "What the agent is good at. Other agents choose it by this text.",
  },
  model: { type: "text", description: "The model as provider/id. Default: that of the settings." },
  tools: {
    type: "texts",
    description: "Names of tools, patterns such as mcp__*, or one of the sets none, read and all.",
  },
  subAgents: { type: "texts", description: "Names of agents of the workspace that this agent may hire." },
  architecture: { type: "text", description: "Name of an architecture. Default: react." },
  harness: {
    type: "text",
    description:
      "The program that is hired as this agent: claude-code, codex, opencode, gemini, demo, or acp with a command.",
    trust: "always",
  },
  command: {
    type: "texts",
    description: "The hired program and its arguments. Default: that of the harness.",
    trust: "always",
  },
  inheritEnv: {
    type: "texts",
    description: "Names of environment variables that the hired program sees. Default: none.",
    trust: "always",
  },
  idleMs: {
    type: "integer",
    description:
      "How long a hired program stays alive while it only waits for people, in milliseconds. Default: 3600000.",
    trust: "always",
  },
  isolation: {
    type: "choice",
    choices: ["worktree"],
    description: "worktree: each task works in a worktree of git of its own.",
  },
  ...sharedFields,
  onBudget: {
    type: "choice",
    choices: ["ask", "end"],
    description:
      "What happens at the budget: ask a person for a top-up and wait, or end the run. Default: end.",
  },
  topUp: {
    type: "group",
    description:
      "What callers of a server with the scope run may add to the budget of a run. Default: nothing.",
    fields: { ...ownLimits, deadlineMs: { ...limits.deadlineMs, trust: "always" } },
  },
  allowedChanges: {
    type: "group",
    description:
      "What callers of a server with the scope run may change in a run of this agent. Default: nothing.",
    fields: {
      models: {
        type: "texts",
        description: "Models as provider/id that they may choose besides that of the agent.",
        trust: "always",
      },
      instructions: {
        type: "boolean",
        description: "Whether they may replace the instructions.",
        trust: "always",
      },
      tools: { type: "boolean", description: "Whether they may leave out tools.", trust: "always" },
      toolResults: {
        type: "boolean",
        description: "Whether they may replace results of tool calls in a fork.",
        trust: "always",
      },
    },
  },
  reviewers: {
    type: "map",
    description: "Reviews of the sessions of this agent by name, each after a number of tool calls.",
    trust: "always",
    fields: {
      every: {
        type: "integer",
        description: "Number of tool calls of a session after which a review starts.",
      },
      tools: { type: "texts", description: "Names of tools of the agent that the review may call." },
      prompt: { type: "text", description: "What the review does." },
      budget: {
        type: "group",
        description: "Limits of one review. Default: 8 turns.",
        fields: ownLimits,
      },
    },
  },
} as const satisfies Fields;

/** The keys that an agent with `harness` may have. */
export const hiredKeys = [
  "name",
  "description",
  "harness",
  "command",
  "model",
  "inheritEnv",
  "idleMs",
  "isolation",
  "budget",
  "onBudget",
  "topUp",
] as const satisfies (keyof typeof agentFields)[];

/** The keys that only an agent with `harness` may have. */
export const onlyHiredKeys = [
  "command",
  "inheritEnv",
  "idleMs",
] as const satisfies (typeof hiredKeys)[number][];

/** What the front matter of an agent says. */
export type AgentValues = ValuesOf<typeof agentFields>;

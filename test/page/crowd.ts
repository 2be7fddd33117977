import {
  formatAgentId,
  type HostedAgent,
  type JsonValue,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type ModelStreamPart,
  type RunContext,
  type TaskHandle,
} from "../../src/kernel/index.ts";

export interface CrowdOptions {
  /** Number of agents, with the lead and the heads of the teams. */
  readonly agents: number;
  /** Makes an agent with the loop of the program that hosts it. */
  readonly worker: (name: string, model: Model) => HostedAgent;
  /** Resolves when a worker may take its next turn. The turns before that are in flight. */
  readonly turn: () => Promise<void>;
}

const teamNames = [
  "testing",
  "database-drivers",
  "codegen",
  "cache",
  "mail",
  "i18n",
  "image-processing",
  "ui-kit",
  "json",
  "config",
  "math",
  "logging",
  "parsers",
  "crypto",
  "queues",
  "auth",
  "build-tools",
  "markdown",
  "date-and-time",
  "billing",
  "http-clients",
  "cli",
  "internal-platform-compatibility",
  "search",
] as const;

/** The endings that distinguish teams with the same name. */
const regions = ["", "-eu", "-us", "-asia", "-lab"] as const;

/** Number of agents of a team of average size. */
const teamSize = 50;

/**
 * A company of any size: a lead, heads of teams, and workers who call a model and a tool turn by turn. The first third
 * of the workers ends after one turn, so that ended, running and waiting agents are visible at the same time.
 */
export function crowd({ agents, worker, turn }: CrowdOptions): HostedAgent {
  if (agents === 1) return worker("lead", new Clerk(turn));
  const teams = teamsOf(agents - 1);
  const heads = teams.map(({ name, size }) => head(name, size, worker, turn));
  return {
    id: formatAgentId({ name: "lead" }),
    spawnBudget: { maxAgents: agents },
    budget: { maxCostUsd: agents },
    subAgents: heads,
    run: async (ctx) => {
      const hired: TaskHandle[] = [];
      for (const [at, { id }] of heads.entries())
        hired.push(await hire(ctx, id, "Port your packages.", (teams[at]?.size ?? 1) * 0.9));
      return joined(ctx, hired);
    },
  };
}

interface TeamPlan {
  readonly name: string;
  /** Number of agents with the head. */
  readonly size: number;
}

/** Splits agents into teams of unequal sizes. */
function teamsOf(agents: number): readonly TeamPlan[] {
  const count = Math.max(1, Math.min(100, Math.round(agents / teamSize)));
  const weights = Array.from({ length: count }, (_each, at) => 1 + ((at * 7) % 5));
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  let left = agents;
  return weights.map((weight, at) => {
    const size = at === count - 1 ? left : Math.max(1, Math.floor((agents * weight) / whole));
    left -= size;
    const region = regions[Math.floor(at / teamNames.length)];
    return { name: `${teamNames[at % teamNames.length]}${region}`, size };
  });
}

function head(
  name: string,
  size: number,
  worker: CrowdOptions["worker"],
  turn: () => Promise<void>,
): HostedAgent {
  const reports = Array.from({ length: size - 1 }, (_each, at) =>
    worker(`${name}-${at + 1}`, new Clerk(turn, at % 3 === 0 ? 1 : 1_000)),
  );
  return {
    id: formatAgentId({ name }),
    subAgents: reports,
    run: async (ctx) => {
      const hired: TaskHandle[] = [];
      for (const { id } of reports) hired.push(await hire(ctx, id, "Port one package.", 0.8));
      return joined(ctx, hired);
    },
  };
}

async function hire(
  ctx: RunContext,
  agentId: HostedAgent["id"],
  input: JsonValue,
  maxCostUsd: number,
): Promise<TaskHandle> {
  const outcome = await ctx.spawn(agentId, input, { budget: { maxCostUsd } });
  if (outcome.kind === "refused") throw new Error(`no seat for ${agentId}: ${outcome.reason}`);
  return outcome.handle;
}

async function joined(ctx: RunContext, hired: readonly TaskHandle[]): Promise<string> {
  const results = await ctx.joinAll(hired);
  return `${results.length} packages are ported.`;
}

/** A model that asks for one tool call per turn, for so many turns, and then answers. */
class Clerk implements Model {
  readonly provider = "crowd";
  readonly modelId = "haiku-5";
  readonly maxOutputTokens = 400;
  readonly #turn: () => Promise<void>;
  readonly #turns: number;

  constructor(turn: () => Promise<void>, turns = 1_000) {
    this.#turn = turn;
    this.#turns = turns;
  }

  async generate({ messages }: ModelRequest): Promise<ModelResponse> {
    await this.#turn();
    return this.#response(messages);
  }

  async *stream(request: ModelRequest): AsyncIterable<ModelStreamPart> {
    yield { type: "finish", ...(await this.generate(request)) };
  }

  #response(messages: ModelRequest["messages"]): ModelResponse {
    const answers = messages.filter(({ role }) => role === "assistant").length;
    const isLast = answers >= this.#turns;
    return {
      message: {
        role: "assistant",
        content: isLast
          ? [{ type: "text", text: "The package is ported." }]
          : [
              { type: "text", text: "I convert the next module and run its tests." },
              {
                type: "tool_call",
                callId: `call-${answers}`,
                toolName: "convert",
                input: { module: `src/module-${answers}.ts` },
              },
            ],
      },
      stopReason: isLast ? "stop" : "tool_calls",
      usage: {
        inputTokens: 200 + 20 * answers,
        outputTokens: 50,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        reasoningTokens: 0,
      },
    };
  }
}

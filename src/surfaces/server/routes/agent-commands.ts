import { namedModel, priceCatalog } from "../../../capabilities/index.ts";
import { Fault, type Model, type PriceTable } from "../../../kernel/index.ts";
import { reply, route } from "../../http/route.ts";
import { runSummary, sessionId } from "../../http/schema/run-schemas.ts";
import { sessionParams } from "../../http/schema/session-schemas.ts";
import {
  choice,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  text,
} from "../../http/schema/schema.ts";
import { commandKinds } from "../../http/served-agents.ts";

const agentName = text({ minLength: 1, maxLength: 1_280 });

const command = named(
  "AgentCommand",
  object({
    name: text(),
    description: text(),
    kind: choice(commandKinds, {
      description:
        "`command`: code of an extension, which `run` executes. `prompt`: a template, and `skill`: a skill; the input /NAME sends either.",
    }),
  }),
);
const listed = { status: 200, description: "The commands.", schema: object({ commands: list(command) }) };

const listCommands = route({
  id: "agents.commands",
  method: "GET",
  path: "/api/agents/{name}/commands",
  summary:
    "List what a person may write as /NAME to an agent: commands of extensions, prompt templates and skills.",
  scope: "read",
  params: object({ name: agentName }),
  responses: [listed],
  handle: async ({ server, runtime, params }) =>
    reply(listed, { commands: await server.agents.commands(params.name, runtime) }),
});

const ran = {
  status: 200,
  description: "The command has ended. The conversation continues in this session.",
  schema: object({ sessionId: text() }),
};

const runCommand = route({
  id: "agents.run-command",
  method: "POST",
  path: "/api/agents/{name}/commands/{command}",
  summary: "Run a command of an extension in a session, with the text that follows its name.",
  scope: "run",
  params: object({ name: agentName, command: text({ minLength: 1, maxLength: 256 }) }),
  body: object({ sessionId, args: optional(text({ maxLength: 100_000 })) }),
  responses: [ran],
  handle: async ({
    server,
    runtime,
    params: { name, command: wanted },
    body: { sessionId: id, args = "" },
  }) => reply(ran, await server.agents.runCommand(name, { command: wanted, args, sessionId: id, runtime })),
});

const started = {
  status: 202,
  description: "The run that writes the summary.",
  schema: runSummary,
};

const startCompaction = route({
  id: "sessions.start-compaction",
  method: "POST",
  path: "/api/sessions/{sessionId}/compaction",
  summary: "Start a run in which the agent of a session summarises the beginning of the conversation.",
  scope: "run",
  params: sessionParams,
  body: object({ instructions: optional(text({ maxLength: 20_000 })) }),
  isBodyOptional: true,
  responses: [started],
  handle: async ({ runtime, params, body }) => {
    const run = await runtime.sessions.compact(params.sessionId, body);
    return reply(started, await run.summary());
  },
});

const models = {
  status: 200,
  description: "The models.",
  schema: object({
    models: list(
      object({
        name: text({ description: "provider/id" }),
        agents: list(text(), { description: "The agents whose main model it is." }),
        inputUsd: nullable(number({ description: "Dollars per million tokens. null: unknown." })),
        outputUsd: nullable(number({ description: "Dollars per million tokens. null: unknown." })),
        contextWindow: nullable(integer({ description: "Tokens. null: unknown." })),
      }),
    ),
  }),
};

const listModels = route({
  id: "models.list",
  method: "GET",
  path: "/api/models",
  summary: "List the models of the agents of this server, with price and context window.",
  scope: "read",
  responses: [models],
  handle: async ({ server }) => {
    const prices = priceCatalog();
    await prices.load?.();
    const users = new Map<string, string[]>();
    for (const { name, model } of server.agents.list)
      if (model !== null) users.set(model, [...(users.get(model) ?? []), name]);
    return reply(models, {
      models: [...users].map(([name, agents]) => ({ name, agents, ...factsOf(name, prices) })),
    });
  },
});

/**
 * Returns price and context window of a model. For a model whose provider this server does not know, both are
 * unknown.
 */
function factsOf(
  name: string,
  prices: PriceTable,
): Record<"inputUsd" | "outputUsd" | "contextWindow", number | null> {
  let model: Model;
  try {
    model = namedModel(name);
  } catch (error) {
    if (!Fault.is(error)) throw error;
    return { inputUsd: null, outputUsd: null, contextWindow: null };
  }
  const { provider, modelId, contextWindow = null } = model;
  const price = prices.find({ provider, modelId, inputTokens: 1, at: Date.now() });
  return {
    inputUsd: perMillion(price?.inputUsd),
    outputUsd: perMillion(price?.outputUsd),
    contextWindow,
  };
}

/** Converts a price per token to a price per million tokens, rounded, because the price per token has more digits. */
function perMillion(usd: number | undefined): number | null {
  return usd === undefined ? null : Number((usd * 1e6).toFixed(6));
}

export const agentCommandRoutes = [listCommands, runCommand, startCompaction, listModels] as const;

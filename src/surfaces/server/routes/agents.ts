import { Fault, type JsonSchema, type Runtime } from "../../../kernel/index.ts";
import { lackOfModel, listedModelNames } from "../../../capabilities/index.ts";
import { hasScope, type Access } from "../../http/access/access.ts";
import { reply, route } from "../../http/route.ts";
import {
  choice,
  flag,
  list,
  named,
  nullable,
  number,
  object,
  schemaOf,
  text,
} from "../../http/schema/schema.ts";
import { agentKinds, modelNames } from "../../http/served-agents.ts";

const inputSchema = nullable(
  schemaOf<JsonSchema>({
    type: "object",
    description: "JSON Schema of the input of a run. null: the input is a message.",
  }),
);

const messages = list(
  object({
    name: text(),
    schema: nullable(
      schemaOf<JsonSchema>({
        type: "object",
        description: "JSON Schema of the value. null: every JSON value is accepted.",
      }),
    ),
  }),
  { description: "What the workflow declares. Its runs may wait for others too." },
);

const agent = named(
  "Agent",
  object({
    name: text(),
    description: nullable(text()),
    model: nullable(text()),
    tools: list(text()),
    subAgents: list(text()),
    skills: list(text()),
    maxCostUsd: nullable(
      number({
        description:
          "The agent's own budget for a run, which that of a submission can only lower. null: none, or not known before the start.",
      }),
    ),
    inputSchema,
    kind: choice(agentKinds, { description: "An object and a workflow have no sessions." }),
    handlers: list(text(), { description: "Names of the handlers of an object." }),
    signals: messages,
    updates: messages,
  }),
);
const hosted = { status: 200, description: "The agents.", schema: object({ agents: list(agent) }) };
const listAgents = route({
  id: "agents.list",
  method: "GET",
  path: "/api/agents",
  summary: "List the agents that callers may start here.",
  scope: "read",
  responses: [hosted],
  handle: ({ server }) => reply(hosted, { agents: server.agents.list }),
});

const agentParams = object({ name: text({ minLength: 1, maxLength: 1_280 }) });
const one = { status: 200, description: "The agent.", schema: agent };
const getAgent = route({
  id: "agents.get",
  method: "GET",
  path: "/api/agents/{name}",
  summary: "Read an agent.",
  scope: "read",
  params: agentParams,
  responses: [one],
  handle: ({ server, params }) => reply(one, server.agents.find(params.name)),
});

const promptText = object({
  path: text({ description: "The file with the instructions of the agent." }),
  instructions: text(),
  hash: text({ description: "Hash of the whole file. A change must name it." }),
  refusal: nullable(text({ description: "Why the file must not be changed. null if the caller may." })),
});

const options = {
  status: 200,
  description: "What the caller may change for one run.",
  schema: object({
    name: text(),
    models: list(text(), {
      description:
        "Names of models that the caller may choose. The first one is that of the agent. Those of other agents and of the price list are here only if this server can call them.",
    }),
    anyModel: flag({ description: "Whether the caller may name other models, too." }),
    tools: list(text(), { description: "Names of the agent's tools." }),
    changes: object({ instructions: flag(), tools: flag(), toolResults: flag() }),
    instructions: nullable(
      text({
        description: "The agent's own instructions. null if they are not one text, or not for the caller.",
      }),
    ),
    file: nullable(promptText),
    inputSchema,
  }),
};
const getOptions = route({
  id: "agents.options",
  method: "GET",
  path: "/api/agents/{name}/options",
  summary:
    "Read what the caller may change for one run of an agent: models, instructions, tools. Costs what starting a run of the agent costs, without a model call.",
  scope: "run",
  params: agentParams,
  responses: [options],
  handle: async ({ server, runtime, params: { name: wanted }, access }) => {
    const { name } = server.agents.find(wanted);
    const made = await server.agents.describe(name);
    const isAdmin = hasScope(access, "admin");
    const { models: allowedModels = [], ...allowed } = made.allowedChanges ?? {};
    const own = modelNames(made);
    const mayRewrite = isAdmin || allowed.instructions === true;
    const file = mayRewrite ? await server.agents.promptFile(name)?.read() : undefined;
    const others = othersOf(server.agents.list);
    const listed = isAdmin ? await listedModelNames(providersOf([...own, ...others])) : [];
    const known = isAdmin ? callable(runtime, [...others, ...listed]) : [];
    const choices = [...own, ...allowedModels, ...known];
    return reply(options, {
      name,
      models: [...new Set(choices)],
      anyModel: isAdmin,
      tools: (made.tools ?? []).map((tool) => tool.name),
      changes: {
        instructions: mayRewrite,
        tools: isAdmin || allowed.tools === true,
        toolResults: isAdmin || allowed.toolResults === true,
      },
      instructions: mayRewrite ? (file?.instructions ?? made.ownInstructions ?? null) : null,
      file: file === undefined ? null : { ...file, refusal: refusalOf(access) ?? file.refusal },
      inputSchema: made.inputSchema ?? null,
    });
  },
});

const saved = { status: 200, description: "The file after the change.", schema: promptText };
const saveInstructions = route({
  id: "agents.save-instructions",
  method: "PUT",
  path: "/api/agents/{name}/instructions",
  summary:
    "Replace the instructions in the file of an agent of the workspace. `hash` is that of the file that the person has seen; if the file has changed since, the request is refused with 409.",
  scope: "admin",
  params: agentParams,
  body: object({
    instructions: text({ minLength: 1, maxLength: 256 * 1_024 }),
    hash: text({ minLength: 1, maxLength: 200 }),
  }),
  responses: [saved],
  handle: async ({ server, params: { name: wanted }, body, access }) => {
    const { name } = server.agents.find(wanted);
    const refusal = refusalOf(access);
    if (refusal !== null) throw new Fault("permission_denied", refusal);
    const file = server.agents.promptFile(name);
    if (file === undefined)
      throw new Fault(
        "invalid_argument",
        `agent ${name} has no file that holds its instructions; change them where the agent is made`,
        { details: { agent: name } },
      );
    return reply(saved, await file.save(body.instructions, body.hash));
  },
});

/**
 * Returns why a caller must not change the files of the workspace, which all tenants share. `null` if it is
 * allowed.
 */
function refusalOf(access: Access): string | null {
  if (!hasScope(access, "admin")) return "the file can be changed only with a token of the scope admin";
  if (access.tenantId !== null)
    return "the file belongs to all tenants; use a token with the scope admin and without a tenant";
  return null;
}

/**
 * Returns the models that this process can call: their names are known, and this process has the keys and packages
 * of their providers.
 */
function callable(runtime: Runtime, names: readonly string[]): readonly string[] {
  // No session has this id. The port finds models by their names for a session that need not exist.
  const port = runtime.extensionPort("ses_models");
  return names.filter((name) => {
    try {
      const model = port.findModel(name);
      return model !== undefined && lackOfModel(model) === undefined;
    } catch {
      // The `resolveModel` of a program may throw for a name that it does not know.
      return false;
    }
  });
}

function othersOf(agents: readonly { readonly model: string | null }[]): readonly string[] {
  return agents.flatMap(({ model }) => model ?? []);
}

function providersOf(models: readonly string[]): readonly string[] {
  return [...new Set(models.map((model) => model.split("/", 1)[0] ?? ""))];
}

export const agentRoutes = [listAgents, getAgent, getOptions, saveInstructions] as const;

/** The option of Reeve to use in place of an option of another library. */
interface Replacement {
  /** Names of options with the same meaning. The first of these names that the object accepts is the one to use. */
  readonly names?: readonly string[];
  /** What to do if the object accepts none of `names`. */
  readonly elsewhere: string;
}

const members = [
  "workers",
  "routes",
  "debaters",
  "peers",
  "steps",
  "branches",
  "nodes",
  "agents",
  "subAgents",
];
const instructions = { names: ["instructions"], elsewhere: "use `instructions` of the agent" };
const maxTurns = { names: ["maxTurns", "maxSteps"], elsewhere: "use `maxTurns` of the agent" };
const firstArgument = { elsewhere: "pass it to the call: agent.invoke(input)" };
const output = {
  names: ["output"],
  elsewhere: "use `output` of invoke(): agent.invoke(input, { output: schema })",
};
const subAgents = { names: members, elsewhere: "use `subAgents` of the agent" };
const store = { elsewhere: 'use openRuntime({ store: "sqlite:PATH" }) and the option `runtime` of invoke()' };

/**
 * The options of other libraries that users type most often by mistake: from the AI SDK, LangGraph, Mastra and
 * OpenAI Agents. Letter case, `_` and `-` do not count, so `thread_id` equals `threadId`. Names that resemble an
 * option of Reeve need no entry.
 */
export const foreignNames: ReadonlyMap<string, Replacement> = new Map(
  Object.entries<Replacement>({
    system: instructions,
    systemprompt: instructions,
    prompt: firstArgument,
    messages: firstArgument,
    maxsteps: maxTurns,
    recursionlimit: maxTurns,
    maxretries: { elsewhere: "use `retry: { maxRetries }` of the agent, or of openRuntime()" },
    outputtype: output,
    outputschema: output,
    schema: { ...output, names: ["inputSchema", "output"] },
    responseformat: output,
    parameters: { names: ["inputSchema"], elsewhere: "use `inputSchema` of tool()" },
    handler: { names: ["execute"], elsewhere: "use `execute` of tool()" },
    requireapproval: { names: ["needsApproval"], elsewhere: "use `needsApproval` of tool()" },
    onstepfinish: { elsewhere: "use `hooks` of the agent: hooks.on(HookEvent.STEP_END, ...)" },
    handoffs: subAgents,
    agents: subAgents,
    workers: subAgents,
    mcpservers: { elsewhere: "use `tools: await mcpServers({ ... }).tools()`, with mcpServers of reeve/mcp" },
    checkpointer: { names: ["store"], ...store },
    store,
    stream: { elsewhere: "use agent.stream(input)" },
    maxagents: { elsewhere: "use `spawnBudget: { maxAgents }`" },
    maxcostusd: { elsewhere: "use `budget: { maxCostUsd }`" },
    executionbudget: { names: ["budget"], elsewhere: "use `budget` of the agent" },
    threadid: { names: ["sessionId"], elsewhere: "use `sessionId` of invoke()" },
    abortsignal: { names: ["signal"], elsewhere: "use `signal` of invoke()" },
    temperature: {
      elsewhere: "use `settings: { temperature }` of invoke(), or withSettings(model, { temperature })",
    },
    maxtokens: {
      names: ["maxOutputTokens"],
      elsewhere:
        "use `settings: { maxOutputTokens }` of invoke(), or withSettings(model, { maxOutputTokens })",
    },
    apikey: { elsewhere: 'use namedModel("provider/model", { apiKey }) as the model of the agent' },
    baseurl: {
      names: ["url"],
      elsewhere: 'use namedModel("provider/model", { baseUrl }) as the model of the agent',
    },
  }),
);

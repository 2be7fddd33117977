// What each way to think costs on one and the same task: calls, tokens and hired agents, with models that play sensible parts.
import { Agent, OrchestratorAgent, Parallel, Sequential, tool } from "reeve";
import {
  actorCritic,
  blackboard,
  debate,
  deepAgent,
  graphOfThoughts,
  planAndExecute,
  reflexion,
  rewoo,
  router,
  selfRefine,
  supervisor,
  swarm,
  treeOfThoughts,
} from "reeve/architectures";
import { messageText, type JsonValue, type Model, type ModelRequest } from "reeve/kernel";
import { scriptedModel, type ScriptedReply } from "reeve/testing";
import type { Row } from "./row.ts";

const task =
  "We need a SQLite binding for Node: alpha, beta or gamma. Which one, and why? Look at all three.";
const bindings = ["alpha", "beta", "gamma"];

const facts = tool({
  name: "facts",
  description: "What is known of a binding",
  inputSchema: { type: "object", properties: { binding: { type: "string" } }, required: ["binding"] },
  execute: ({ binding }) =>
    `${JSON.stringify(binding)}: synchronous API, prebuilt for six platforms, ${"tested nightly, ".repeat(12)}MIT.`,
});
const answer =
  "Take beta: it is maintained, prebuilt for all of our platforms, and twice as fast as alpha in our kind of load; gamma lacks backups.";

/** A model that says what its part says to what it is asked, as often as it is asked. */
function part(reply: (request: ModelRequest, call: number) => string | ScriptedReply): Model {
  let call = 0;
  return scriptedModel(Array.from({ length: 200 }, () => (request: ModelRequest) => reply(request, call++)));
}

function calls(...wanted: readonly (readonly [string, JsonValue])[]): ScriptedReply {
  return { toolCalls: wanted.map(([name, input]) => ({ name, input })) };
}

/** Examines all bindings in one turn, then answers. */
const worker = (said = answer): Model =>
  part(({ messages }) => {
    if (messages.at(-1)?.role === "tool") return said;
    const asked = messageText(messages.at(-1) ?? { role: "system", content: "" });
    const named = bindings.filter((binding) => asked.includes(binding));
    return calls(
      ...(named.length === 0 ? bindings : named).map((binding) => ["facts", { binding }] as const),
    );
  });

const scores = (...all: readonly number[]): Model =>
  part(
    (_request, call) =>
      `{"score": ${all[Math.min(call, all.length - 1)]}, "reason": "the reasons are thin", "issues": ["why not gamma?"]}`,
  );

const specialist = (name: string, model = worker()): Agent =>
  new Agent({ name, description: `Knows ${name}.`, model, tools: [facts] });

const three = (): Record<string, Agent> =>
  Object.fromEntries(bindings.map((name) => [name, specialist(name)]));
const delegations = (make: (binding: string) => readonly [string, JsonValue]): Model =>
  part((_request, call) => (call === 0 ? calls(...bindings.map(make)) : answer));

/** One of each, made anew for each run. */
const cast: Readonly<Record<string, () => Agent>> = {
  react: () => new Agent({ name: "react", model: worker(), tools: [facts] }),
  planAndExecute: () =>
    new Agent({
      name: "planner",
      architecture: planAndExecute(),
      model: worker(),
      models: {
        planner: part(() => JSON.stringify(bindings.map((binding) => `Look at ${binding}`))),
        synthesizer: part(() => answer),
      },
      tools: [facts],
    }),
  rewoo: () =>
    new Agent({
      name: "rewoo",
      architecture: rewoo(),
      model: part(() => answer),
      models: {
        planner: part(() =>
          JSON.stringify(
            bindings.map((binding, index) => ({ id: `E${index + 1}`, tool: "facts", args: { binding } })),
          ),
        ),
      },
      tools: [facts],
    }),
  "selfRefine(react)": () =>
    new Agent({
      name: "refiner",
      architecture: selfRefine(),
      model: worker(),
      models: {
        critic: part((_request, call) => (call === 0 ? "Say why not gamma." : "No issues.")),
        refiner: part(() => answer),
      },
      tools: [facts],
    }),
  "reflexion(react)": () =>
    new Agent({
      name: "reflexion",
      architecture: reflexion(),
      model: worker(),
      models: { evaluator: scores(0.5, 0.9), reflector: part(() => "Compare all three on the same points.") },
      tools: [facts],
    }),
  treeOfThoughts: () =>
    new Agent({
      name: "tree",
      architecture: treeOfThoughts(),
      model: part(() => answer),
      models: {
        proposer: part(() => '["Weigh the platforms", "Weigh the speed", "Weigh who maintains it"]'),
        evaluator: scores(0.5, 0.7, 0.6),
      },
    }),
  graphOfThoughts: () =>
    new Agent({
      name: "graph",
      architecture: graphOfThoughts(),
      model: part(() => answer),
      models: { evaluator: scores(0.5, 0.7, 0.6) },
    }),
  deepAgent: () =>
    new Agent({
      name: "deep",
      architecture: deepAgent({ subAgents: three() }),
      model: part((_request, call) => {
        const todos = (status: string): JsonValue => ({
          todos: bindings.map((content) => ({ content, status })),
        });
        if (call === 0) return calls(["write_todos", todos("pending")]);
        if (call === 1)
          return calls(...bindings.map((agent) => ["task", { agent, task: `Look at ${agent}` }] as const));
        if (call === 2)
          return calls(
            ["write_file", { path: "report.md", content: answer }],
            ["write_todos", todos("completed")],
          );
        return answer;
      }),
    }),
  router: () =>
    new Agent({
      name: "router",
      architecture: router({ routes: three() }),
      model: part(() => "route: beta\nconfidence: 0.9"),
    }),
  orchestrator: () =>
    new OrchestratorAgent({
      name: "lead",
      model: delegations((binding) => [`handoff_${binding}`, { task: `Look at ${binding}` }]),
      subAgents: Object.values(three()).map((agent) => ({ agent })),
    }),
  supervisor: () =>
    new Agent({
      name: "boss",
      architecture: supervisor({ workers: three() }),
      model: delegations((binding) => ["delegate", { worker: binding, task: `Look at ${binding}` }]),
    }),
  actorCritic: () =>
    new Agent({
      name: "magazine",
      architecture: actorCritic({
        actor: specialist("writer"),
        critic: new Agent({ name: "editor", model: scores(0.5, 0.95) }),
      }),
    }),
  "debate of three": () => new Agent({ name: "forum", architecture: debate({ debaters: threeVoices() }) }),
  swarm: () =>
    new Agent({
      name: "swarm",
      architecture: swarm({
        peers: {
          desk: specialist(
            "desk",
            part(() => calls(["handoff", { target: "expert", message: task }])),
          ),
          expert: specialist("expert"),
        },
      }),
    }),
  blackboard: () =>
    new Agent({
      name: "room",
      architecture: blackboard({ agents: three(), coordinator: "self", decider: "self" }),
      model: part(() => answer),
      models: {
        coordinator: part((_request, call) =>
          call < 3
            ? `{"nextAgent": "${bindings[call]}", "instruction": "Look at ${bindings[call]}"}`
            : '{"terminate": true}',
        ),
      },
    }),
  "Sequential of three": () => new Sequential({ name: "line", steps: Object.values(three()) }),
  "Parallel of three": () => new Parallel({ name: "fan", branches: Object.values(three()) }),
};

/** They never quite agree, so both rounds are held. */
function threeVoices(): Record<string, Agent> {
  const said = ["Take beta, for its speed.", "Beta has all our platforms: take it.", answer];
  return Object.fromEntries(bindings.map((name, index) => [name, specialist(name, worker(said[index]))]));
}

export async function* rows(): AsyncIterable<Row> {
  let floor: number | undefined;
  for (const [name, make] of Object.entries(cast)) {
    const stream = make().stream(task);
    let hired = 0;
    for await (const event of stream) if (event.type === "spawn_start") hired += 1;
    const { status, usage, turns, interruptionReason } = await stream.result();
    if (status !== "completed") throw new Error(`${name} ended as ${status}: ${interruptionReason}`);
    const tokens = usage.inputTokens + usage.outputTokens;
    floor ??= tokens;
    yield {
      name: `${name}: ${turns} calls, ${hired} hired`,
      value: tokens,
      unit: "tokens",
      against: floor,
      goal: null,
    };
  }
}

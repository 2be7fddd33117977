import { describe, expect, test } from "vitest";
import {
  blackboard,
  debate,
  graphOfThoughts,
  planAndExecute,
  react,
  reflexion,
  rewoo,
  router,
  selfRefine,
  supervisor,
  swarm,
  treeOfThoughts,
  type ThoughtOperation,
} from "../../../src/agents/architectures/index.ts";
import type { AgentOptions } from "../../../src/entries/index.ts";
import { Agent } from "../../../src/entries/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { runAlone, worker } from "../company.ts";
import { promptOf, architectureEventData, transcriptLines, runAgent } from "./run-agent.ts";

const silence = " \n";

function models(scripts: Readonly<Record<string, readonly ScriptStep[]>>): Pick<AgentOptions, "models"> {
  const entries = Object.entries(scripts).map(([role, script]) => [role, scriptedModel(script)] as const);
  return { models: Object.fromEntries(entries) };
}

const operations = (...last: readonly ThoughtOperation[]) =>
  graphOfThoughts({ operations: [{ do: "generate", count: 2 }, { do: "score" }, ...last], parallel: false });

describe("an empty reply never replaces an earlier answer", () => {
  test.for<[string, Partial<AgentOptions>, string, string]>([
    [
      "selfRefine() keeps the first version if the refiner",
      {
        architecture: selfRefine(),
        ...models({ main: ["Good."], critic: ["Add a date.", "No issues."], refiner: [silence] }),
      },
      "Good.",
      "self_refine.empty_answer",
    ],
    [
      "planAndExecute() keeps the results of the steps if the synthesizer",
      {
        architecture: planAndExecute(),
        ...models({ main: ["dug"], planner: ['["dig"]'], synthesizer: [silence] }),
      },
      "1. dig\ndug",
      "plan.empty_answer",
    ],
    [
      "rewoo() keeps the tool outputs if the solver",
      {
        architecture: rewoo(),
        ...models({ main: [], planner: ['[{"tool": "none"}]'], solver: [silence] }),
      },
      "E1 = none {} (failed)\nthere is no tool none; there are: none",
      "rewoo.empty_answer",
    ],
    [
      "treeOfThoughts() keeps the best thought if the synthesizer",
      {
        architecture: treeOfThoughts({ depth: 1 }),
        ...models({ main: [], proposer: ['["dig"]'], evaluator: ["1"], synthesizer: [silence] }),
      },
      "dig",
      "tot.empty_answer",
    ],
  ])("%s keeps its earlier answer if a model replies with blank text", async ([, options, output, name]) => {
    const { result, eventNames } = await runAgent(options);
    expect(result).toMatchObject({ status: "completed", output });
    expect(eventNames).toContain(name);
  });

  test("selfRefine() asks an empty refiner again in the next round, and ends at an empty critique", async () => {
    const { result, conversation } = await runAgent({
      architecture: selfRefine(),
      ...models({ main: ["Deep."], critic: ["How deep?", "How deep?", ""], refiner: ["", "Two fathoms."] }),
    });
    expect(result).toMatchObject({ output: "Two fathoms.", metadata: { selfRefine: { rounds: 2 } } });
    expect(transcriptLines(conversation).at(-1)).toBe("assistant: Two fathoms.");
  });

  test("reflexion() never prefers an empty attempt to one with text, whatever the scores", async () => {
    const { result, eventNames, events } = await runAgent({
      architecture: reflexion(react(), { maxAttempts: 3 }),
      ...models({
        main: ["Deep.", "", "Two fathoms."],
        evaluator: ["0", "1", "0"],
        reflector: ["Measure.", "Say it."],
      }),
    });
    expect(result).toMatchObject({
      output: "Two fathoms.",
      metadata: { reflexion: { scores: [0, 1, 0], lessons: ["Measure.", "Say it."] } },
    });
    expect(eventNames).not.toContain("reflexion.threshold_met");
    expect(architectureEventData(events, "reflexion.empty_answer")).toEqual([{ attempt: 2 }]);
    const last = await runAgent({
      architecture: reflexion(react(), { maxAttempts: 2 }),
      ...models({ main: ["Deep.", ""], evaluator: ["0", "0"], reflector: ["Measure."] }),
    });
    expect(last.result.output).toBe("Deep.");
    const first = await runAgent({
      architecture: reflexion(react(), { maxAttempts: 2 }),
      ...models({ main: ["", "Deep."], evaluator: ["0.5", "0.1"], reflector: ["Say it."] }),
    });
    expect(first.result.output).toBe("Deep.");
  });

  test("graphOfThoughts() drops empty drafts, and keeps the best thought if the aggregator or the refiner is empty", async () => {
    const drafted = await runAgent({
      architecture: operations(),
      ...models({ main: [], thinker: ["", "Deep."], evaluator: ["0.5"] }),
    });
    expect(drafted.result).toMatchObject({
      output: "Deep.",
      metadata: { thoughts: { best: "t1", thoughts: [{ id: "t1" }] } },
    });
    const merged = await runAgent({
      architecture: operations({ do: "aggregate" }),
      ...models({ main: [], thinker: ["Deep.", "Two."], evaluator: ["0.5", "0.1"], aggregator: [silence] }),
    });
    expect(merged.result).toMatchObject({ status: "completed", output: "Deep." });
    const refined = await runAgent({
      architecture: operations({ do: "keep_best" }, { do: "refine" }),
      ...models({ main: [], thinker: ["Deep.", "Two."], evaluator: ["0", "0"], refiner: [silence] }),
    });
    expect(refined.result).toMatchObject({ status: "completed", output: "Two." });
    const none = await runAgent({ architecture: operations(), ...models({ main: [], thinker: ["", " "] }) });
    expect(none.result).toMatchObject({ status: "failed", interruptionReason: "no_thoughts" });
  });

  test("debate() removes a debater with an empty answer, and keeps the earlier answers if all are empty", async () => {
    const [ada, bob, eve] = [worker("ada", ["", ""]), worker("bob", ["", ""]), worker("eve", ["Deep."])];
    const debaters = { ada: ada.agent, bob: bob.agent, eve: eve.agent };
    const alone = await runAlone(new Agent({ name: "panel", architecture: debate({ debaters }) }));
    expect(alone.result).toMatchObject({
      status: "completed",
      output: "Deep.",
      metadata: { debate: { answers: { eve: "Deep." } } },
    });
    expect(architectureEventData(alone.events, "debate.response")[0]).toMatchObject({
      why: "ada gave an empty answer",
    });
    const [one, two] = [worker("one", ["Deep.", ""]), worker("two", ["Flat.", ""])];
    const both = debate({ debaters: { one: one.agent, two: two.agent } });
    const { result } = await runAlone(new Agent({ name: "panel", architecture: both }));
    expect(result).toMatchObject({ status: "completed", output: "Deep." });
  });

  test("debate() keeps the vote if the judge replies with blank text", async () => {
    const [ada, bob] = [worker("ada", ["Deep."]), worker("bob", ["Flat."])];
    const architecture = debate({
      debaters: { ada: ada.agent, bob: bob.agent },
      rounds: 1,
      judge: "self",
    });
    const { result, notes } = await runAlone(
      new Agent({ name: "panel", model: scriptedModel([silence]), architecture }),
    );
    expect(result).toMatchObject({ status: "completed", output: "Deep." });
    expect(notes).toContain("debate.empty_answer");
  });

  test("swarm() keeps the text of the earlier peer, and router() completes with an empty output", async () => {
    const handoff = {
      text: "Ask bob.",
      toolCalls: [{ name: "handoff", input: { target: "bob", message: "Go." } }],
    };
    const peers = { ada: worker("ada", [handoff]).agent, bob: worker("bob", [silence]).agent };
    const swarmed = await runAlone(new Agent({ name: "peers", architecture: swarm({ peers }) }));
    expect(swarmed.result).toMatchObject({ status: "completed", output: "Ask bob." });
    expect(architectureEventData(swarmed.events, "swarm.empty_answer")).toEqual([{ agent: "bob" }]);
    const routes = { eve: worker("eve", [silence]).agent };
    const routed = await runAlone(
      new Agent({ name: "desk", model: scriptedModel(["eve"]), architecture: router({ routes }) }),
    );
    expect(routed.result).toMatchObject({ status: "completed", output: "" });
    expect(architectureEventData(routed.events, "router.empty_answer")).toEqual([{ route: "eve" }]);
  });

  test("blackboard() ignores an empty entry of kind answer, and keeps the last entry if the decider is empty", async () => {
    const [ada, bob] = [
      worker("ada", ["Deep.", "Deep still."]),
      worker("bob", ['{"kind": "answer", "content": ""}', '{"kind": "answer", "content": "Two."}']),
    ];
    const agents = { ada: ada.agent, bob: bob.agent };
    const { result } = await runAlone(new Agent({ name: "board", architecture: blackboard({ agents }) }));
    expect(result).toMatchObject({ status: "completed", output: "Two." });
    const eve = worker("eve", ["Deep."]);
    const decided = await runAlone(
      new Agent({
        name: "board",
        model: scriptedModel([silence]),
        architecture: blackboard({ agents: { eve: eve.agent }, maxRounds: 1, decider: "self" }),
      }),
    );
    expect(decided.result).toMatchObject({ status: "completed", output: "Deep." });
    expect(decided.notes).toContain("blackboard.empty_answer");
  });

  test("supervisor() reports an empty worker answer as an error and does not forward it", async () => {
    const diver = worker("diver", [""]);
    const call = (name: string, input: Readonly<Record<string, string>>) => ({
      toolCalls: [{ name, input }],
    });
    const model = scriptedModel([
      call("delegate", { worker: "diver", task: "Dive." }),
      call("forward_message", { worker: "diver" }),
      "The depth is unknown.",
    ]);
    const { result } = await runAlone(
      new Agent({ name: "boss", model, architecture: supervisor({ workers: { diver: diver.agent } }) }),
    );
    expect(result).toMatchObject({ status: "completed", output: "The depth is unknown." });
    const messages = JSON.stringify(model.calls.at(-1)?.messages);
    expect(messages).toContain("diver gave an empty answer");
    expect(messages).toContain("has no answer to forward");
    expect(promptOf(diver.model.calls[0] as never)).toBe("Dive.");
  });
});

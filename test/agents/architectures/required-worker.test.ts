import { describe, expect, test } from "vitest";
import {
  actorCritic,
  blackboard,
  debate,
  router,
  selfRefine,
  swarm,
} from "../../../src/agents/architectures/index.ts";
import {
  Agent,
  Conditional,
  END,
  Parallel,
  Sequential,
  START,
  tool,
  Graph,
} from "../../../src/entries/index.ts";
import type { Architecture } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { runAlone, worker } from "../company.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "seen",
});

/** Creates an agent that needs more turns than its `maxTurns`. */
function endlessWorker(name: string): Agent {
  const turn: ScriptStep = { text: `${name} works`, toolCalls: [{ name: "look", input: {} }] };
  return worker(name, [turn, turn], { tools: [look], maxTurns: 2 }).agent;
}

/** Creates an agent that is interrupted with `router_unresolved`. */
function unresolvedRouter(name: string): Agent {
  const architecture = router({ routes: { nowhere: worker(`${name}.nowhere`, []).agent } });
  return new Agent({ name, model: scriptedModel(["route: ?"]), architecture });
}

const says = (name: string, ...script: readonly string[]): Agent => worker(name, script).agent;
const team = (architecture: Architecture): Agent =>
  new Agent({ name: "team", model: scriptedModel(["route: a", "unused"]), architecture });

type RequiringTeam = readonly [
  what: string,
  agent: (create: (name: string) => Agent) => Agent,
  output: string,
];

/** Teams and flows that need the answer of a worker, with the expected output if that worker gives none. */
const requiringTeams: readonly RequiringTeam[] = [
  ["the actor", (create) => team(actorCritic({ actor: create("a"), critic: says("c") })), "a works"],
  ["the critic", (create) => team(actorCritic({ actor: says("a", "work"), critic: create("c") })), "work"],
  ["all debaters", (create) => team(debate({ debaters: { a: create("a"), b: create("b") } })), "a works"],
  [
    "the judge",
    (create) =>
      team(debate({ debaters: { a: says("a", "1", "1"), b: says("b", "2", "2") }, judge: create("j") })),
    "1",
  ],
  ["a specialist", (create) => team(router({ routes: { a: create("a") } })), "a works"],
  ["a peer", (create) => team(swarm({ peers: { a: create("a"), b: says("b") } })), "a works"],
  [
    "the coordinator",
    (create) => team(blackboard({ agents: { a: says("a") }, coordinator: create("c") })),
    "",
  ],
  [
    "the decider",
    (create) => team(blackboard({ agents: { a: says("a", "a note") }, decider: create("c"), maxRounds: 1 })),
    "a note",
  ],
  [
    "a step of a sequential flow",
    (create) => new Sequential({ name: "team", steps: [says("a", "A"), create("b")] }),
    "b works",
  ],
  [
    "all branches of a parallel flow",
    (create) => new Parallel({ name: "team", branches: [create("a"), create("b")] }),
    "a works\n\nb works",
  ],
  [
    "the branch of a conditional flow",
    (create) =>
      new Conditional({ name: "team", predicate: () => true, ifTrue: create("a"), ifFalse: says("b") }),
    "a works",
  ],
  [
    "a node of a graph",
    (create) =>
      new Graph({
        name: "team",
        nodes: { a: create("a") },
        edges: [
          [START, "a"],
          ["a", END],
        ],
      }),
    "a works",
  ],
];

describe("an interrupted worker whose answer is required", () => {
  test.each(requiringTeams)(
    "an interrupted worker whose answer is required ends its parent as max_turns if the worker reaches maxTurns: %s",
    async (_what, agent, output) => {
      const { result, events } = await runAlone(agent(endlessWorker));
      expect(result).toMatchObject({ status: "max_turns", interruptionReason: "max_turns_exceeded", output });
      expect(result.error).toBeNull();
      const ends = events.flatMap((event) =>
        event.type === "flow_end" || event.type === "flow_step_end" ? [event.data.status] : [],
      );
      expect(ends.every((status) => status === "max_turns" || status === "completed")).toBe(true);
    },
  );

  test.each(requiringTeams)(
    "an interrupted worker whose answer is required ends its parent with the worker's interruptionReason: %s",
    async (_what, agent) => {
      const { result } = await runAlone(agent(unresolvedRouter));
      expect(result).toMatchObject({ status: "failed", interruptionReason: "router_unresolved" });
      expect(result.error).toBeNull();
    },
  );

  test("an interrupted worker whose answer is required also interrupts an architecture that wraps the team", async () => {
    const base = debate({ debaters: { a: endlessWorker("a"), b: endlessWorker("b") } });
    const { result } = await runAlone(team(selfRefine(base)));
    expect(result).toMatchObject({ status: "max_turns", output: "a works" });
  });

  test("an interrupted worker whose answer is required does not replace an earlier complete answer of the actor or of a debate round", async () => {
    const turn = { text: "hm", toolCalls: [{ name: "look", input: {} }] };
    const once = (name: string): Agent =>
      worker(name, [`${name} 1`, turn, turn], { tools: [look], maxTurns: 2 }).agent;
    const acted = team(actorCritic({ actor: once("a"), critic: says("c", "score: 0", "score: 0") }));
    expect((await runAlone(acted)).result).toMatchObject({ status: "max_turns", output: "a 1" });
    const debated = team(debate({ debaters: { a: once("a"), b: once("b") } }));
    expect((await runAlone(debated)).result).toMatchObject({ status: "max_turns", output: "a 1" });
  });
});

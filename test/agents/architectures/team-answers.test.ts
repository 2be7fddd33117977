import { describe, expect, test } from "vitest";
import {
  actorCritic,
  blackboard,
  debate,
  reflexion,
  router,
  supervisor,
  swarm,
} from "../../../src/agents/architectures/index.ts";
import { Agent, Conditional, END, Parallel, START, Graph } from "../../../src/entries/index.ts";
import type { ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { company, runAlone, seen, worker, type Worker } from "../company.ts";

const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;

/** Creates a worker that replies with JSON if its prompt contains a JSON Schema, and with text otherwise. */
function counting(name: string): Worker {
  return worker(name, [
    ({ messages }: ModelRequest) => (JSON.stringify(messages).includes("JSON Schema") ? '{"n": 1}' : "one"),
  ]);
}

const kinds: Readonly<Record<string, (a: Agent, b: Agent) => Agent>> = {
  conditional: (a, b) => new Conditional({ name: "team", predicate: () => true, ifTrue: a, ifFalse: b }),
  "a vote": (a, b) => new Parallel({ name: "team", branches: [a, b], merge: "vote" }),
  workflow: (a, b) =>
    new Graph({
      name: "team",
      nodes: { a, b },
      edges: [
        [START, "a"],
        ["a", "b"],
        ["b", END],
      ],
    }),
  router: (a, b) =>
    new Agent({
      name: "team",
      model: scriptedModel(["route: a"]),
      architecture: router({ routes: { a, b } }),
    }),
  swarm: (a, b) => new Agent({ name: "team", architecture: swarm({ peers: { a, b } }) }),
  debate: (a, b) => new Agent({ name: "team", architecture: debate({ debaters: { a, b } }) }),
  blackboard: (a, b) =>
    new Agent({ name: "team", architecture: blackboard({ agents: { a }, decider: b, maxRounds: 1 }) }),
  "actor-critic": (a) => {
    const critic = worker("critic", ['{"score": 1}']).agent;
    return new Agent({ name: "team", architecture: actorCritic({ actor: a, critic }) });
  },
};

test.for(Object.entries(kinds))(
  "a requested output schema applies to the worker that writes the answer, without a model of the team: %s",
  async ([, team]) => {
    const { runtime } = await company();
    const agent = team(counting("a").agent, counting("b").agent);
    const result = await agent.invoke("Count.", { runtime, output: schema });
    expect(result).toMatchObject({ output: { n: 1 }, status: "completed" });
  },
);

test("an answer of a team that does not fit the requested schema fails the run if no model can correct it", async () => {
  const { runtime } = await company();
  const panel = new Parallel({ name: "panel", branches: [counting("a").agent] });
  const result = await panel.invoke("Count.", { runtime, output: schema });
  expect(result).toMatchObject({
    status: "failed",
    output: "one",
    error: { code: "model_format_error" },
  });
});

test("the output schema of swarm() is not enforced for a peer that hands over, but for the peer that answers", async () => {
  const handoff = { name: "handoff", input: { target: "bank", message: "Count." } };
  const desk = worker("desk", [{ text: "Not mine.", toolCalls: [handoff] }]);
  const bank = counting("bank");
  const architecture = swarm({ peers: { desk: desk.agent, bank: bank.agent } });
  const { runtime } = await company();
  const agent = new Agent({ name: "team", architecture });
  const result = await agent.invoke("Count.", { runtime, output: schema });
  expect(result).toMatchObject({ output: { n: 1 }, status: "completed" });
  expect(desk.model.calls).toHaveLength(1);
});

describe("a worker of a team", () => {
  const image = { type: "image", mediaType: "image/png", source: { kind: "base64", data: "aGk=" } } as const;
  const advisors: Readonly<
    Record<string, (a: Agent, b: Agent, advisor: Agent) => ReturnType<typeof debate | typeof blackboard>>
  > = {
    judge: (a, b, judge) => debate({ debaters: { a, b }, rounds: 1, judge }),
    decider: (a, _b, decider) => blackboard({ agents: { a }, decider, maxRounds: 1 }),
  };

  test.for(Object.entries(advisors))(
    "a worker of a team sees the images and the conversation of the invocation as %s",
    async ([, make]) => {
      const [a, b] = [worker("a", ["x", "x"]), worker("b", ["y", "y"])];
      const advisor = worker("advisor", ["first", "second"]);
      const agent = new Agent({ name: "team", architecture: make(a.agent, b.agent, advisor.agent) });
      const { run } = await company();
      const { result } = await run(agent, "Earlier?");
      await run(agent, [{ type: "text", text: "And now?" }, image], { sessionId: result.sessionId });
      const shown = JSON.stringify(advisor.model.calls.at(-1)?.messages);
      for (const each of ["Earlier?", "first", "And now?", image.source.data]) expect(shown).toContain(each);
    },
  );

  test("a worker of a team gets the instructions of the team after its own", async () => {
    const [a, b] = [worker("a", ["x"], { instructions: "Be a." }), worker("b", ["x"])];
    const architecture = debate({ debaters: { a: a.agent, b: b.agent } });
    await runAlone(new Agent({ name: "team", instructions: "Answer in French.", architecture }));
    expect(seen(a.model)[0]?.[0]).toMatch(/^Be a\.\n[\s\S]*Answer in French\./u);
    expect(seen(b.model)[0]?.[0]).toMatch(/Answer in French\./u);
  });

  test("a worker of a team sees the lessons of earlier reflexion() attempts", async () => {
    const actor = worker("actor", ["bad", "good"]);
    const critic = worker("critic", ['{"score": 1}', '{"score": 1}']);
    const agent = new Agent({
      name: "team",
      model: scriptedModel([]),
      models: {
        evaluator: scriptedModel(['{"score": 0}', '{"score": 1}']),
        reflector: scriptedModel(["Use metres."]),
      },
      architecture: reflexion(actorCritic({ actor: actor.agent, critic: critic.agent })),
    });
    const { result } = await runAlone(agent);
    expect(result.output).toBe("good");
    expect(seen(actor.model).map((messages) => messages.join("\n").includes("Use metres."))).toEqual([
      false,
      true,
    ]);
  });
});

test("a team refuses two different agents with the same name", () => {
  const [one, other] = [worker("bot", []).agent, worker("bot", []).agent];
  const message = /has two agents named bot/u;
  expect(() => router({ routes: { a: one, b: other } })).toThrow(message);
  expect(() => debate({ debaters: { a: one, b: other } })).toThrow(message);
  expect(() => swarm({ peers: { a: one, b: one } })).toThrow(message);
  expect(() => debate({ debaters: { a: one, b: one } })).not.toThrow();
});

test("an agent refuses a worker with its own name", () => {
  const architecture = supervisor({ workers: { a: worker("bot", []).agent } });
  expect(() => new Agent({ name: "bot", model: scriptedModel([]), architecture })).toThrow(
    "agent bot, with its sub-agents, has two agents named bot; rename one of them",
  );
});

test("names of object properties and numbers are valid names of members", async () => {
  const names = ["1", "__proto__", "constructor", "toString", "-"];
  const debaters = Object.fromEntries(
    names.map((name, index) => [name, worker(`w${index}`, [`${name}?`, `${name}!`]).agent]),
  );
  const { result } = await runAlone(new Agent({ name: "panel", architecture: debate({ debaters }) }));
  expect(result.output).toBe("1!");
  const { answers } = result.metadata["debate"] as { readonly answers: object };
  expect(Object.keys(answers)).toEqual(names);
});

test("debate() compares very long answers in linear time", async () => {
  const dots = `${".".repeat(400_000)}a`;
  const [a, b] = [worker("a", [dots]), worker("b", [`${dots}!`])];
  const architecture = debate({ debaters: { a: a.agent, b: b.agent } });
  const { result } = await runAlone(new Agent({ name: "panel", architecture }));
  expect(result.output).toBe(dots);
});

import { describe, expect, test } from "vitest";
import { actorCritic, debate, router, supervisor, swarm } from "../../../src/agents/architectures/index.ts";
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
import type { Architecture, Clock, Model } from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel, type ScriptedModel } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { company, worker, type Company } from "../company.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "seen",
});
const ask = tool({
  name: "ask",
  description: "Asks",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "yes",
});

type CreateAgent = (name: string) => Agent;
type Team = readonly [what: string, agent: (slow: CreateAgent, quick: CreateAgent) => Agent, output: string];

const team = (architecture: Architecture): Agent =>
  new Agent({ name: "team", model: scriptedModel(["route: a"]), architecture });

const parallelNodes = (nodes: Readonly<Record<string, Agent>>): Graph =>
  new Graph({
    name: "team",
    nodes,
    edges: Object.keys(nodes).flatMap((name) => [[START, name] as const, [name, END] as const]),
  });

/**
 * Teams and flows in which a worker is running and has partial text when the run is stopped, with the expected output.
 */
const teams: readonly Team[] = [
  ["a router", (slow) => team(router({ routes: { a: slow("a") } })), "a looks"],
  ["a swarm", (slow, quick) => team(swarm({ peers: { a: slow("a"), b: quick("b") } })), "a looks"],
  ["an actor", (slow, quick) => team(actorCritic({ actor: slow("a"), critic: quick("c") })), "a looks"],
  ["a critic", (slow, quick) => team(actorCritic({ actor: quick("a"), critic: slow("c") })), "a said"],
  ["a debate", (slow) => team(debate({ debaters: { a: slow("a"), b: slow("b") } })), "a looks"],
  [
    "a sequential flow",
    (slow, quick) => new Sequential({ name: "team", steps: [quick("a"), slow("b")] }),
    "b looks",
  ],
  [
    "a parallel flow",
    (slow, quick) => new Parallel({ name: "team", branches: [slow("a"), quick("b"), slow("c")] }),
    "a looks\n\nb said\n\nc looks",
  ],
  [
    "a conditional flow",
    (slow, quick) =>
      new Conditional({ name: "team", predicate: () => true, ifTrue: slow("a"), ifFalse: quick("b") }),
    "a looks",
  ],
  [
    "a graph",
    (slow) =>
      new Graph({
        name: "team",
        nodes: { a: slow("a") },
        edges: [
          [START, "a"],
          ["a", END],
        ],
      }),
    "a looks",
  ],
  [
    "flows within flows",
    (slow, quick) => {
      const inner = new Sequential({ name: "inner", steps: [quick("a"), slow("b")] });
      return new Conditional({ name: "team", predicate: () => true, ifTrue: inner, ifFalse: quick("c") });
    },
    "b looks",
  ],
];

const quick: CreateAgent = (name) => worker(name, [`${name} said`]).agent;

/** Creates workers that reply with text and a tool call, and then wait a minute for the next model reply. */
function slowWorkers({ clock }: Pick<Company, "clock">): {
  readonly slow: CreateAgent;
  readonly areWaiting: () => boolean;
} {
  const models: { readonly calls: readonly unknown[] }[] = [];
  const slow: CreateAgent = (name) => {
    const script = [
      { text: `${name} looks`, toolCalls: [{ name: "look", input: {} }] },
      { text: "late", delayMs: 60_000 },
    ];
    const { agent, model } = worker(name, script, { tools: [look] }, { clock });
    models.push(model);
    return agent;
  };
  const areWaiting = (): boolean => models.length > 0 && models.every(({ calls }) => calls.length === 2);
  return { slow, areWaiting };
}

/** Makes every call of a model but the first one end with an error after `ms`, as a model that reacts to a cancel late. */
function stopAfter(model: ScriptedModel, clock: Clock, ms: number): void {
  const generate = model.generate.bind(model);
  model.generate = async (...args) => {
    const reply = await generate(...args);
    if (model.calls.length === 1) return reply;
    return new Promise((_resolve, reject) => {
      clock.schedule(clock.now() + ms, () => reject(new Error("stopped")));
    });
  };
}

describe("B5: the partial text of a worker is in the output when its team is stopped", () => {
  test.each(teams)(
    "%s keeps the partial text of its workers when the run is cancelled",
    async (_what, agent, output) => {
      const { runtime, ended, clock } = await company();
      const { slow, areWaiting } = slowWorkers({ clock });
      const run = await runtime.submit(agent(slow, quick), "Go.");
      await until(areWaiting);
      await run.cancel("enough");
      expect((await ended(run)).result).toMatchObject({
        status: "cancelled",
        interruptionReason: "enough",
        output,
      });
    },
  );

  test.each(teams)(
    "%s keeps the partial text of its workers when the deadline passes",
    async (_what, agent, output) => {
      const { runtime, ended, clock } = await company();
      const { slow, areWaiting } = slowWorkers({ clock });
      const run = await runtime.submit(agent(slow, quick), "Go.", { budget: { deadlineMs: 1_000 } });
      await until(areWaiting);
      await clock.advance(1_500);
      expect((await ended(run)).result).toMatchObject({
        status: "deadline_exceeded",
        output,
      });
    },
  );

  test.each(teams)(
    "%s keeps the partial text when the worker notices the passed deadline before its parent",
    async (_what, agent, output) => {
      // The clock advances without firing a timer.
      const still = new FakeClock();
      let passed = 0;
      const clock: Clock = {
        now: () => still.now() + passed,
        schedule: (atMs, callback) => still.schedule(atMs, callback),
      };
      const { runtime, ended } = await company({ clock });
      const looks = (name: string) => ({ text: `${name} looks`, toolCalls: [{ name: "look", input: {} }] });
      const late = tool({
        name: "look",
        description: "Looks",
        inputSchema: { type: "object" },
        execute: () => {
          passed = 1_500;
          return "seen";
        },
      });
      const slow: CreateAgent = (name) => worker(name, [looks(name)], { tools: [late] }).agent;
      const run = await runtime.submit(agent(slow, quick), "Go.", { budget: { deadlineMs: 1_000 } });
      expect((await ended(run)).result).toMatchObject({ status: "deadline_exceeded", output });
    },
  );

  test("a graph keeps the partial text of one node when other nodes without text stop first", async () => {
    const { runtime, ended, clock } = await company();
    const looks = { text: "a looks", toolCalls: [{ name: "look", input: {} }] };
    const a = worker("a", [looks, looks], { tools: [look] });
    stopAfter(a.model, clock, 50);
    const silentWorker = (name: string) => worker(name, [{ text: "late", delayMs: 60_000 }], {}, { clock });
    const [one, two] = [silentWorker("one"), silentWorker("two")];
    const agent = parallelNodes({ one: one.agent, a: a.agent, two: two.agent });
    const run = await runtime.submit(agent, "Go.");
    await until(() => [a, one, two].flatMap(({ model }) => model.calls).length === 4);
    await run.cancel("enough");
    await clock.advance(50);
    expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "a looks" });
  });

  const pairs: readonly Team[] = [
    ["a debate", (create) => team(debate({ debaters: { a: create("a"), b: create("b") } })), "a looks"],
    ["a graph", (create) => parallelNodes({ a: create("a"), b: create("b") }), "a looks"],
  ];

  test.each(pairs)(
    "%s keeps the partial text of the worker that is declared first, not of the one that stops first",
    async (_what, agent, output) => {
      const { runtime, ended, clock } = await company();
      const models: { readonly calls: readonly unknown[] }[] = [];
      const create: CreateAgent = (name) => {
        const looks = { text: `${name} looks`, toolCalls: [{ name: "look", input: {} }] };
        const { agent: one, model } = worker(name, [looks, looks], { tools: [look] });
        models.push(model);
        stopAfter(model, clock, name === "a" ? 50 : 10);
        return one;
      };
      const run = await runtime.submit(agent(create, quick), "Go.");
      await until(() => models.length === 2 && models.every(({ calls }) => calls.length === 2));
      await run.cancel("enough");
      await clock.advance(10);
      await clock.advance(40);
      expect((await ended(run)).result).toMatchObject({ status: "cancelled", output });
    },
  );

  test("a streamed part of an answer is kept when the run is cancelled", async () => {
    const { runtime, ended } = await company();
    const begun = Promise.withResolvers<void>();
    const model: Model = {
      provider: "own",
      modelId: "own",
      generate: () => Promise.reject(new Error("it is streamed")),
      stream: async function* (_request, { signal } = {}) {
        yield { type: "text_delta", text: "half an answer" } as const;
        await new Promise((_resolve, reject) => {
          signal?.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
          begun.resolve();
        });
      },
    };
    const inner = new Sequential({ name: "inner", steps: [quick("a"), new Agent({ name: "b", model })] });
    const agent = team(router({ routes: { a: inner } }));
    const run = await runtime.submit(agent, "Go.", { streaming: true });
    await begun.promise;
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({
      status: "cancelled",
      output: "half an answer",
    });
  });

  test("the text of a suspended worker that waits for an approval is kept when the run is cancelled", async () => {
    const { runtime, ended, clock } = await company({ suspendAfterMs: 10 });
    const script = [{ text: "a asks", toolCalls: [{ name: "ask", input: {} }] }, "late"];
    const { agent } = worker("a", script, { tools: [ask] });
    const run = await runtime.submit(new Sequential({ name: "team", steps: [quick("b"), agent] }), "Go.");
    for await (const event of run.events()) if (event.type === "approval_request") break;
    await clock.advance(1_000);
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({
      status: "cancelled",
      output: "a asks",
    });
  });

  test.each(["model", "tool"])(
    "partial text is kept after the stop grace if the worker's %s ignores the cancel",
    async (where) => {
      const { runtime, ended, clock } = await company({ stopGraceMs: 100 });
      let begun = 0;
      const forever = (): Promise<never> => {
        begun++;
        return new Promise(() => {});
      };
      const looks = { text: "a looks", toolCalls: [{ name: "look", input: {} }] };
      const { agent, model } = worker("a", [looks], {
        tools: [
          where === "model"
            ? look
            : tool({ name: "look", description: "", inputSchema: { type: "object" }, execute: forever }),
        ],
      });
      const generate = model.generate.bind(model);
      model.generate = (...args) => (model.calls.length === 0 ? generate(...args) : forever());
      const run = await runtime.submit(team(router({ routes: { a: agent } })), "Go.");
      await until(() => begun === 1);
      await run.cancel("enough");
      await clock.advance(100);
      expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "a looks" });
    },
  );

  test("a supervisor keeps its own text, not the partial text of a worker", async () => {
    const { runtime, ended, clock } = await company();
    const { slow, areWaiting } = slowWorkers({ clock });
    const delegate = { name: "delegate", input: { worker: "a", task: "Look." } };
    const model = scriptedModel([{ text: "I have it looked at.", toolCalls: [delegate] }]);
    const architecture = supervisor({ workers: { a: slow("a") } });
    const run = await runtime.submit(new Agent({ name: "boss", model, architecture }), "Go.");
    await until(areWaiting);
    await run.cancel("enough");
    expect((await ended(run)).result).toMatchObject({ status: "cancelled", output: "I have it looked at." });
  });
});

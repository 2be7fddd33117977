import { describe, expect, test } from "vitest";
import { router, type RouterOptions } from "../../../src/agents/architectures/index.ts";
import { Agent, type AgentOptions } from "../../../src/entries/index.ts";
import { parseSessionId, type SubmitOptions } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { company, runAlone, seen, worker, type Worker } from "../company.ts";

const sessionId = parseSessionId("desk");

function desk(
  script: readonly ScriptStep[],
  options: Partial<RouterOptions> = {},
  agentOptions: Partial<AgentOptions> = {},
  [billing, travel]: readonly [Worker, Worker] = [
    worker("clerk", ["It was 7 euros.", "It still was.", "And still."], {
      description: "Knows all invoices.",
    }),
    worker("guide", ["Go by train.", "At noon.", "By boat."]),
  ],
) {
  const model = scriptedModel(script);
  const routes = { billing: billing.agent, travel: { agent: travel.agent, description: "Plans trips." } };
  const agent = new Agent({
    name: "desk",
    model,
    architecture: router({ routes, ...options }),
    ...agentOptions,
  });
  return { agent, model, billing: billing.model, travel: travel.model };
}

describe("router()", () => {
  test("router() chooses one specialist with one model call and returns its answer unchanged", async () => {
    const { agent, model, billing, travel } = desk(["route: billing\nconfidence: 0.9"]);
    const { result, notes, events } = await runAlone(agent, "What did I pay?");
    expect(result).toMatchObject({ status: "completed", output: "It was 7 euros.", turns: 2 });
    expect([model.calls.length, billing.calls.length, travel.calls.length]).toEqual([1, 1, 0]);
    expect(seen(model)[0]?.[0]).toContain("- billing: Knows all invoices.\n- travel: Plans trips.");
    expect(seen(billing)).toEqual([["What did I pay?"]]);
    expect(notes).toEqual(["router.classified", "router.dispatched", "router.completed"]);
    expect(events.map(({ type }) => type)).toContain("spawn_start");
  });

  test.each([
    ["Route: Travel", "travel"],
    ["**route**: `travel`\n**confidence**: 80%", "travel"],
    ['{"route": "travel", "confidence": 0.8}', "travel"],
    ["travel", "travel"],
    ["**Route:** travel", "travel"],
    ["route: <travel>\nconfidence: <0.9>", "travel"],
    ["<think>route: billing?</think>\nroute: travel", "travel"],
    ["Because it is about money.\nroute = billing", "billing"],
    ["The travel specialist should take this one.", "travel"],
  ])("router() understands the reply %j", async (reply, route) => {
    const { agent } = desk([reply]);
    const { events } = await runAlone(agent);
    const end = events.findLast(({ type }) => type === "task_end");
    expect(end?.data).toMatchObject({ metadata: { router: { route } } });
  });

  test.each([
    ["an unknown route", "route: garden\nconfidence: 1", {}],
    ["no route", "I do not know.", {}],
    ["a confidence below requireConfidence", "route: billing\nconfidence: 0.4", { requireConfidence: 0.5 }],
    ["no confidence although requireConfidence is set", "route: billing", { requireConfidence: 0.5 }],
  ])(
    "router() answers a reply with %s by the fallback, or fails with router_unresolved without a specialist",
    async (_what, reply, options) => {
      const unresolved = desk([reply], options);
      const { result, notes } = await runAlone(unresolved.agent);
      expect(result).toMatchObject({
        status: "failed",
        interruptionReason: "router_unresolved",
        error: null,
      });
      expect(notes).toEqual(["router.classified", "router.unresolved"]);
      expect([unresolved.billing.calls.length, unresolved.travel.calls.length]).toEqual([0, 0]);
      const withFallback = desk([reply], { ...options, fallbackRoute: "travel" });
      const second = await runAlone(withFallback.agent);
      expect(second.result).toMatchObject({ status: "completed", output: "Go by train." });
    },
  );

  test("router() counts a confidence above 1 as 0, because its scale is unknown, and accepts one equal to requireConfidence", async () => {
    const unsure = desk(["route: billing\nconfidence: 7"], { requireConfidence: 0.1 });
    expect((await runAlone(unsure.agent)).result).toMatchObject({ status: "failed", output: "" });
    const { agent } = desk(["route: billing\nconfidence: 7/7"], { requireConfidence: 1 });
    expect((await runAlone(agent)).result.output).toBe("It was 7 euros.");
  });

  test("stream() of router() yields the text deltas of the specialist and the events of the router", async () => {
    const { runtime } = await company();
    const { agent } = desk(["route: billing"]);
    const deltas: string[] = [];
    const eventNames: string[] = [];
    for await (const event of agent.stream("Paid?", { runtime })) {
      if (event.type === "message_update") deltas.push(`${event.taskId} ${event.text}`);
      if (event.type === "architecture_event") eventNames.push(event.data.name);
    }
    expect(deltas).toEqual(["t0 route: billing", "t1 It was 7 euros."]);
    expect(eventNames).toEqual(["router.classified", "router.dispatched", "router.completed"]);
  });

  test("router() treats route names that differ only in case as distinct", async () => {
    const [upper, lower] = [worker("upper", ["I am A"]), worker("lower", ["I am a"])];
    const architecture = router({ routes: { A: upper.agent, a: lower.agent } });
    const { result } = await runAlone(
      new Agent({ name: "desk", model: scriptedModel(["route: a"]), architecture }),
    );
    expect(result.output).toBe("I am a");
  });

  test("router() calls the model of the role classifier", async () => {
    const classifier = scriptedModel(["route: travel"]);
    const { agent, model } = desk([], {}, { models: { classifier } });
    expect((await runAlone(agent)).result.output).toBe("Go by train.");
    expect([classifier.calls.length, model.calls.length]).toEqual([1, 0]);
  });

  test("each specialist of router() remembers its own part of a session and nothing of the other specialists", async () => {
    const routes = ["route: billing", "route: travel", "route: billing"];
    const { agent, model, billing, travel } = desk(routes);
    const { run } = await company();
    for (const prompt of ["Paid?", "How do I get there?", "Sure?"]) await run(agent, prompt, { sessionId });
    expect(seen(billing)).toEqual([["Paid?"], ["Paid?", "It was 7 euros.", "Sure?"]]);
    expect(seen(travel)).toEqual([["How do I get there?"]]);
    expect(seen(model).at(-1)?.slice(1)).toEqual([
      "Paid?",
      "It was 7 euros.",
      "How do I get there?",
      "Go by train.",
      "Sure?",
    ]);
  });

  test("a specialist of router() with a shared conversation sees the whole conversation", async () => {
    const { agent, travel } = desk(["route: billing", "route: travel"], { conversationScope: "shared" });
    const { run } = await company();
    for (const prompt of ["Paid?", "And how do I get there?"]) await run(agent, prompt, { sessionId });
    expect(seen(travel)).toEqual([["Paid?", "It was 7 euros.", "And how do I get there?"]]);
  });

  test("a specialist of router() never sees its memory of another user, in the same session or another", async () => {
    const { agent, billing } = desk(["route: billing", "route: billing", "route: billing"]);
    const { run } = await company();
    const as = (userId: string, options: SubmitOptions = {}): SubmitOptions => ({
      sessionId,
      userId,
      ...options,
    });
    await run(agent, "I am Ada.", as("ada"));
    await run(agent, "Who am I?", as("grace"));
    await run(agent, "Who am I?", as("grace", { sessionId: parseSessionId("other") }));
    expect(seen(billing)).toEqual([["I am Ada."], ["Who am I?"], ["Who am I?"]]);
  });

  test("a specialist of router() never sees its memory of another session, even if names of sessions and routers join to one text", async () => {
    const clerk = worker("clerk", ["one", "two", "three", "four"]);
    const model = scriptedModel(Array.from({ length: 4 }, () => "route: clerk"));
    const named = (name: string, key?: string) =>
      new Agent({
        name,
        model,
        ...(key !== undefined && { key }),
        architecture: router({ routes: { clerk: clerk.agent } }),
      });
    const [keyed, plain] = [named("desk", "night"), named("night")];
    const { run, runtime } = await company();
    for (const user of [{}, { userId: "ada" }]) {
      await run(keyed, "My card is 4711.", { sessionId: "hotel", ...user });
      await run(plain, "What did I say?", { sessionId: "hotel/desk", ...user });
    }
    expect(seen(clerk.model)).toEqual([
      ["My card is 4711."],
      ["What did I say?"],
      ["My card is 4711."],
      ["What did I say?"],
    ]);
    await runtime.close();
  });

  test("router() passes images and files to the specialist", async () => {
    const { agent, billing } = desk(["route: billing"]);
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AA==" },
    } as const;
    await runAlone(agent, [{ type: "text", text: "Look." }, image]);
    expect(billing.calls[0]?.messages.at(-1)?.content).toEqual([{ type: "text", text: "Look." }, image]);
  });

  test("an output schema of router() applies to the specialist", async () => {
    const output = {
      type: "object",
      properties: { euros: { type: "number" } },
      required: ["euros"],
    } as const;
    const clerk = worker("clerk", ["Seven.", '{"euros": 7}']);
    const { agent, model } = desk(["route: billing"], {}, {}, [clerk, worker("guide", [])]);
    const { result } = await runAlone(agent, { prompt: "What did I pay?", output });
    expect(result).toMatchObject({ status: "completed", output: { euros: 7 } });
    expect([model.calls.length, clerk.model.calls.length]).toEqual([1, 2]);
  });

  test("a specialist that reaches maxTurns interrupts router() in the same way, and its output is kept", async () => {
    const again = { text: "One moment.", toolCalls: [{ name: "none", input: {} }] };
    const tired = worker("clerk", [again, again], { maxTurns: 1 });
    const { agent } = desk(["route: billing"], {}, {}, [tired, worker("guide", [])]);
    const { result, notes } = await runAlone(agent);
    expect(result).toMatchObject({
      status: "max_turns",
      interruptionReason: "max_turns_exceeded",
      output: "One moment.",
    });
    expect(notes).not.toContain("router.completed");
  });

  test("B5: a budget that is exhausted in the specialist of router() ends the run as budget_exhausted with the output so far", async () => {
    const again = { text: "One moment.", toolCalls: [{ name: "none", input: {} }] };
    const poor = worker("clerk", [again, again]);
    const { agent } = desk(["route: billing"], {}, {}, [poor, worker("guide", [])]);
    const { result } = await runAlone(agent, "Paid?", { budget: { maxTurns: 2 } });
    expect(result).toMatchObject({ status: "budget_exhausted", output: "One moment." });
  });

  test("a specialist that fails or gets no seat fails router() with child_failed", async () => {
    const error = Object.assign(new Error("bad key"), { status: 401 });
    const broken = worker("clerk", [{ error }]);
    const { agent } = desk(["route: billing"], {}, {}, [broken, worker("guide", [])]);
    expect((await runAlone(agent)).result.error).toMatchObject({
      code: "child_failed",
      message: expect.stringContaining(
        "billing ended with status failed: scripted/script failed with HTTP 401: bad key",
      ),
    });
    const full = desk(["route: billing"]);
    const { result } = await runAlone(full.agent, "Paid?", { spawnBudget: { maxAgents: 1 } });
    expect(result.error?.message).toBe(
      "billing was not spawned: every seat is held by a task that waits for a task without a seat; raise spawnBudget.maxAgents (1 seat)",
    );
  });

  test("C1: router() calls no model after a cancel while the specialist works", async () => {
    const { runtime, clock, ended } = await company();
    const slow = worker("clerk", [{ text: "late", delayMs: 100 }, "never"], {}, { clock });
    const { agent, model } = desk(["route: billing"], {}, {}, [slow, worker("guide", [])]);
    const run = await runtime.submit(agent, "Paid?");
    await until(() => slow.model.calls.length === 1);
    await run.cancel("enough");
    expect((await ended(run)).result.status).toBe("cancelled");
    await clock.advance(1_000);
    expect([model.calls.length, slow.model.calls.length]).toEqual([1, 1]);
  });

  test.each<[string, Partial<RouterOptions>, string]>([
    ["an empty list of routes", { routes: {} }, "router needs at least one agent: routes has 0"],
    [
      "an invalid name of a route",
      { routes: { "a b": worker("a", []).agent } },
      "in routes of router is not a valid name",
    ],
    ["a fallbackRoute that is not a route", { fallbackRoute: "garden" }, "fallbackRoute of router is garden"],
    ["a requireConfidence above 1", { requireConfidence: 2 }, "invalid requireConfidence 2 of router()"],
    [
      "an unknown conversationScope",
      { conversationScope: "mine" as never },
      'invalid conversationScope "mine" of router(): expected one of per_route, shared',
    ],
  ])("router() refuses %s", (_what, options, message) => {
    expect(() => desk([], options)).toThrow(message);
  });
});

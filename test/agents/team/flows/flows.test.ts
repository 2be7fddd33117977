import { describe, expect, test } from "vitest";
import {
  Agent,
  Conditional,
  HookEvent,
  HookManager,
  memoryStore,
  openRuntime,
  Parallel,
  Sequential,
  sha256,
} from "../../../../src/entries/index.ts";
import {
  formatAgentId,
  formatTaskId,
  messageText,
  type HostedAgent,
  type JsonValue,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { eventsOf, meeting, openBench, ran, speaker, toldBy } from "./flow-run.ts";
import { findRun } from "../../../runtime/find-run.ts";

const badKey = { error: Object.assign(new Error("bad key"), { status: 401 }) };

/** Returns an agent without a model whose code is `run`. */
function hand(name: string, run: HostedAgent["run"]): HostedAgent {
  return { id: formatAgentId({ name }), run };
}

describe("a Sequential flow", () => {
  test("a Sequential flow sends each step the input and all earlier answers, and returns the last answer", async () => {
    const draft = speaker("draft", "A draft.");
    const critic = speaker("critic", "Too short.");
    const editor = speaker("editor", "A longer draft.");
    const flow = new Sequential({ name: "desk", steps: [draft.agent, critic.agent, editor.agent] });
    const { result, events } = await ran(flow, "Write.");
    expect(result).toMatchObject({
      status: "completed",
      output: "A longer draft.",
      turns: 3,
      metadata: {
        sequential: {
          answers: [
            { step: "draft", answer: "A draft." },
            { step: "critic", answer: "Too short." },
            { step: "editor", answer: "A longer draft." },
          ],
        },
      },
    });
    expect(draft.heard()).toEqual(["Write."]);
    expect(critic.heard()).toEqual(["Write.\n\nA draft."]);
    expect(editor.heard()).toEqual(["Write.\n\nA draft.\n\nToo short."]);
    expect(toldBy(events)).toEqual([
      "start",
      "draft begins",
      "draft completed",
      "critic begins",
      "critic completed",
      "editor begins",
      "editor completed",
      "end completed",
    ]);
  });

  test("each step of a Sequential flow is a task with its own seat, and its messages stay out of the flow's session", async () => {
    const one = speaker("one", "1");
    const flow = new Sequential({ name: "pair", steps: [one.agent, speaker("two", "2").agent] });
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store, unknownPrice: "ignore" });
    const handle = await runtime.submit(flow, "Count.");
    const { sessionId } = await handle.result();
    const spawned = (await eventsOf(handle)).flatMap((event) =>
      event.type === "spawn_start" ? [event.data.agentId] : [],
    );
    expect(spawned).toEqual(["one", "two"]);
    const said = (await store.sessions.read(sessionId)).map(({ entry }) =>
      entry.type === "message" ? messageText(entry.message) : "",
    );
    expect(said).toEqual(["Count.", "2"]);
    await runtime.close();
  });

  test("a Sequential flow may use the same agent for several steps", async () => {
    const echo = speaker("echo", "a", "b");
    const { result, events } = await ran(new Sequential({ name: "s", steps: [echo.agent, echo.agent] }), "x");
    expect(result.output).toBe("b");
    expect(toldBy(events)).toContain("echo.2 completed");
  });

  test("a repeated agent gets a step name that no other agent of the flow has", async () => {
    const [echo, second] = [speaker("echo", "a", "b"), speaker("echo.2", "c")];
    const steps = [second.agent, echo.agent, echo.agent];
    const { result, events } = await ran(new Sequential({ name: "s", steps }), "x");
    expect(result.output).toBe("b");
    const ended = toldBy(events).filter((told) => told.endsWith(" completed"));
    expect(ended).toEqual(["echo.2 completed", "echo completed", "echo.3 completed", "end completed"]);
  });

  test("a failed step stops a Sequential flow with child_failed and the latest answer", async () => {
    const late = speaker("late", "never");
    const steps = [speaker("one", "1").agent, speaker("broken", badKey).agent, late.agent];
    const { result, events } = await ran(new Sequential({ name: "s", steps }), "Count.");
    expect(result).toMatchObject({
      status: "failed",
      output: "1",
      error: { code: "child_failed", details: { worker: "broken", status: "failed" } },
    });
    expect(late.model.calls).toEqual([]);
    expect(toldBy(events).slice(-3)).toEqual(["broken begins", "broken failed", "end failed"]);
  });

  test("resume() continues a Sequential flow at the failed step and does not repeat completed steps", async () => {
    const one = speaker("one", "1");
    const flow = new Sequential({
      name: "s",
      steps: [one.agent, speaker("broken", badKey, "2").agent, speaker("three", "3").agent],
    });
    const runtime = await openBench();
    const handle = await runtime.submit(flow, "Count.");
    expect((await handle.result()).status).toBe("failed");
    await handle.resume();
    expect((await handle.result()).output).toBe("3");
    expect(one.model.calls).toHaveLength(1);
    await runtime.close();
  });

  test("B5, B6: the steps of a Sequential flow spend its budget, and the flow stops as budget_exhausted when it runs out", async () => {
    const two = speaker("two", "2");
    const steps = [speaker("one", "1").agent, two.agent];
    const flow = new Sequential({ name: "s", steps, budget: { maxTurns: 1 } });
    const { result, events } = await ran(flow, "Count.");
    expect(result).toMatchObject({ status: "budget_exhausted", output: "1", turns: 1 });
    expect(two.model.calls).toEqual([]);
    expect(toldBy(events).at(-1)).toBe("end budget_exhausted");
  });

  test("H4: a Sequential flow without a free seat for a step fails and says how to raise the cap", async () => {
    const flow = new Sequential({
      name: "s",
      steps: [speaker("one", "1").agent],
      spawnBudget: { maxAgents: 1 },
    });
    const { result } = await ran(flow, "x");
    expect(result.error).toMatchObject({
      code: "child_failed",
      message:
        "one was not spawned: every seat is held by a task that waits for a task without a seat; raise spawnBudget.maxAgents (1 seat)",
    });
  });

  test("C1, C2: cancelling a Sequential flow cancels its running step, and no later step calls a model", async () => {
    const waiting = Promise.withResolvers<void>();
    const patient = hand("patient", async (ctx) => {
      waiting.resolve();
      return (await ctx.waitForSignal("never")) ?? null;
    });
    const after = speaker("after", "too late");
    const runtime = await openBench();
    const handle = await runtime.submit(
      new Sequential({ name: "s", steps: [speaker("one", "1").agent, patient, after.agent] }),
      "x",
    );
    await waiting.promise;
    await handle.cancel("enough");
    const result = await handle.result();
    expect(result).toMatchObject({ status: "cancelled", interruptionReason: "enough", output: "1" });
    const events = await eventsOf(handle);
    expect(toldBy(events).at(-1)).toBe("end cancelled");
    expect(events.filter(({ type, taskId }) => type === "task_end" && taskId === "t2")).toMatchObject([
      { data: { status: "cancelled" } },
    ]);
    expect(after.model.calls).toEqual([]);
    await runtime.close();
  });

  test("every step of a Sequential flow receives the images of the user's message", async () => {
    const [one, two] = [speaker("one", "1"), speaker("two", "2")];
    const runtime = await openBench();
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "iVBORw0KGgo=" },
    } as const;
    const handle = await runtime.submit(new Sequential({ name: "s", steps: [one.agent, two.agent] }), [
      { type: "text", text: "What is it?" },
      image,
    ]);
    expect((await handle.result()).status).toBe("completed");
    for (const { model } of [one, two])
      expect(model.calls[0]?.messages.at(-1)?.content).toContainEqual(image);
    await runtime.close();
  });

  test("in a continued session, every step of a Sequential flow sees the earlier conversation", async () => {
    const [one, two] = [speaker("one", "1", "3"), speaker("two", "2", "4")];
    const flow = new Sequential({ name: "s", steps: [one.agent, two.agent] });
    const runtime = await openBench();
    const { sessionId } = await (await runtime.submit(flow, "First.")).result();
    const { output } = await (await runtime.submit(flow, "Then?", { sessionId })).result();
    expect(output).toBe("4");
    const heard = ({ model }: typeof one) => model.calls[1]?.messages.map((message) => messageText(message));
    expect(heard(one)).toEqual(["First.", "2", "Then?"]);
    expect(heard(two)).toEqual(["First.", "2", "Then?\n\n3"]);
    await runtime.close();
  });

  test("a Sequential flow refuses an empty list of steps and two agents with the same name at construction", () => {
    expect(() => new Sequential({ name: "s", steps: [] })).toThrow("invalid steps of a sequential");
    const steps = [speaker("twin", "1").agent, speaker("twin", "2").agent];
    expect(() => new Sequential({ name: "s", steps })).toThrow("two agents named twin");
  });
});

describe("a Parallel flow", () => {
  function answers(...texts: readonly string[]): readonly Agent[] {
    return texts.map((text, index) => speaker(`b${index}`, text).agent);
  }

  test("a Parallel flow gives every branch the same input and runs the branches concurrently", async () => {
    const all = meeting(3);
    const heard: JsonValue[] = [];
    const branches = ["a", "b", "c"].map((name) =>
      hand(name, async (ctx) => {
        heard.push(ctx.input);
        return ctx.step("meet", async () => (await all(), name));
      }),
    );
    const { result, events } = await ran(new Parallel({ name: "p", branches }), "in");
    expect(result.output).toBe("a\n\nb\n\nc");
    expect(heard).toEqual(["in", "in", "in"]);
    expect(toldBy(events)).toEqual([
      "start",
      "a begins",
      "b begins",
      "c begins",
      "a completed",
      "b completed",
      "c completed",
      "end completed",
    ]);
  });

  test("a Parallel flow with merge: vote returns the most frequent text, and on a tie the text of the earliest branch", async () => {
    const vote = async (...texts: readonly string[]) =>
      (await ran(new Parallel({ name: "p", branches: answers(...texts), merge: "vote" }), "x")).result.output;
    expect(await vote("no", "yes", "yes")).toBe("yes");
    expect(await vote("b", "a", "a", "b")).toBe("b");
  });

  test("the merge function of a Parallel flow is called once with the texts in branch order", async () => {
    let merges = 0;
    const merge = (texts: readonly string[]) => (merges++, texts.join(" | "));
    const { result } = await ran(new Parallel({ name: "p", branches: answers("X", "Y"), merge }), "x");
    expect(result.output).toBe("X | Y");
    expect(merges).toBe(1);
  });

  test("a failed branch of a Parallel flow contributes an empty text", async () => {
    const branches = [speaker("broken", badKey).agent, ...answers("Y")];
    const given: (readonly string[])[] = [];
    const merge = (texts: readonly string[]) => (given.push(texts), "merged");
    const { result, events } = await ran(new Parallel({ name: "p", branches, merge }), "x");
    expect(result).toMatchObject({ status: "completed", output: "merged" });
    expect(given).toEqual([["", "Y"]]);
    expect(toldBy(events)).toContain("broken failed");
    const votes = new Parallel({
      name: "v",
      branches: [...branches.slice(0, 1), ...answers("Y")],
      merge: "vote",
    });
    expect((await ran(votes, "x")).result.output).toBe("Y");
  });

  test("a Parallel flow whose branches all fail reports the failure of the first branch", async () => {
    const branches = [speaker("broken", badKey).agent, speaker("too", badKey).agent];
    const { result } = await ran(new Parallel({ name: "p", branches }), "x");
    expect(result).toMatchObject({ status: "failed", error: { details: { worker: "broken" } } });
  });

  test("B5: a Parallel flow skips a branch that exhausts its own budget, and stops with a partial output if its own budget runs out", async () => {
    const poor = new Agent({ name: "poor", model: scriptedModel(["x"]), budget: { maxTurns: 0 } });
    const own = await ran(new Parallel({ name: "p", branches: [poor, ...answers("Y")] }), "x");
    expect(own.result).toMatchObject({ status: "completed", output: "Y" });
    const flow = new Parallel({ name: "p", branches: answers("A", "B"), budget: { maxTurns: 1 } });
    const { result } = await ran(flow, "x");
    expect(result).toMatchObject({ status: "budget_exhausted", turns: 1 });
    expect(["A", "B"]).toContain(result.output);
  });

  test("a Parallel flow refuses an empty list of branches and an unknown merge at construction", () => {
    expect(() => new Parallel({ name: "p", branches: [] })).toThrow("invalid branches of a parallel");
    const merge = "shuffle" as unknown as "vote";
    expect(() => new Parallel({ name: "p", branches: answers("a"), merge })).toThrow(
      'expected "concat", "vote" or a function',
    );
  });
});

describe("a Conditional flow", () => {
  const isYes = (text: string): boolean => text.includes("yes");

  test.for([
    { input: "yes please", output: "told yes" },
    { input: "nope", output: "told no" },
  ])(
    "a Conditional flow runs the branch that its predicate selects for the input: $input",
    async ({ input, output }) => {
      const [yes, no] = [speaker("yes", "told yes"), speaker("no", "told no")];
      const flow = new Conditional({ name: "c", predicate: isYes, ifTrue: yes.agent, ifFalse: no.agent });
      const { result, events } = await ran(flow, input);
      expect(result.output).toBe(output);
      expect(yes.model.calls.length + no.model.calls.length).toBe(1);
      expect(toldBy(events)).toHaveLength(4);
    },
  );

  test("the predicate of a Conditional flow may return any truthy or falsy value, and must be a function", async () => {
    const flow = (predicate: (text: string) => unknown): Conditional =>
      new Conditional({
        name: "c",
        predicate: predicate as typeof isYes,
        ifTrue: speaker("yes", "told yes").agent,
        ifFalse: speaker("no", "told no").agent,
      });
    for (const truthy of [(text: string) => text.match(/yes/u), async () => new Map(), () => 1])
      expect((await ran(flow(truthy), "yes")).result.output).toBe("told yes");
    for (const falsy of [(text: string) => text.match(/no/u), async () => undefined, () => 0])
      expect((await ran(flow(falsy), "yes")).result.output).toBe("told no");
    expect(() => flow(undefined as never)).toThrow(
      "invalid predicate undefined of a conditional flow: expected a function of the input",
    );
  });

  test("a predicate of a Conditional flow that throws selects the false branch and is recorded as hook_error", async () => {
    const flow = new Conditional({
      name: "c",
      predicate: () => {
        throw new Error("boom");
      },
      ifTrue: speaker("yes", "told yes").agent,
      ifFalse: speaker("no", "fallback").agent,
    });
    const { result, events } = await ran(flow, "anything");
    expect(result).toMatchObject({ status: "completed", output: "fallback" });
    expect(events.filter(({ type }) => type === "hook_error")).toMatchObject([
      { data: { hook: "predicate", failure: { message: "boom" } } },
    ]);
  });

  test("J1: the decision of a Conditional flow is journaled, and another process does not call its predicate again", async () => {
    const store = memoryStore({ hash: sha256 });
    let asked = 0;
    const flow = (answer: boolean): Conditional =>
      new Conditional({
        name: "c",
        predicate: () => (asked++, answer),
        ifTrue: hand("yes", async (ctx) => (await ctx.waitForSignal("go")) ?? null),
        ifFalse: speaker("no", "told no").agent,
      });
    const one = await openRuntime({ store, unknownPrice: "ignore" });
    let handle = await one.submit(flow(true), "x");
    for await (const event of handle.events()) if (event.type === "task_suspend") break;
    await one.close();
    const two = await openRuntime({ store, unknownPrice: "ignore" });
    two.register(flow(false));
    handle = await findRun(two, handle);
    await handle.signal("go", "gone", formatTaskId(1));
    expect((await handle.result()).output).toBe("gone");
    expect(asked).toBe(1);
    await two.close();
  });
});

describe("flows as agents", () => {
  test("flows nest, and each nested flow has its own seat and flow events", async () => {
    const inner = new Parallel({
      name: "inner",
      branches: [speaker("a", "A").agent, speaker("b", "B").agent],
    });
    const choose = new Conditional({
      name: "choose",
      predicate: (text) => text.includes("B"),
      ifTrue: speaker("yes", "both").agent,
      ifFalse: speaker("no", "none").agent,
    });
    const { result, events } = await ran(new Sequential({ name: "outer", steps: [inner, choose] }), "x");
    expect(result.output).toBe("both");
    expect(events.filter(({ type }) => type === "flow_start")).toHaveLength(3);
    expect(events.filter(({ type }) => type === "spawn_start")).toHaveLength(5);
  });

  test("hooks of a flow receive FLOW_START and FLOW_END with the final status", async () => {
    const hooks = new HookManager();
    const seen: string[] = [];
    hooks.on(HookEvent.FLOW_START, ({ flow, agentName }) => void seen.push(`${agentName} ${flow} starts`));
    hooks.on(HookEvent.FLOW_END, ({ flow, status }) => void seen.push(`${flow} ${status}`));
    await ran(new Sequential({ name: "good", steps: [speaker("one", "1").agent], hooks }), "x");
    await ran(new Sequential({ name: "bad", steps: [speaker("broken", badKey).agent], hooks }), "x");
    expect(seen).toEqual([
      "good sequential starts",
      "sequential completed",
      "bad sequential starts",
      "sequential failed",
    ]);
  });

  test("a flow needs no model and streams its flow events and its steps' messages", async () => {
    const flow = new Sequential({ name: "s", steps: [speaker("one", "1").agent] });
    const types: string[] = [];
    for await (const event of flow.stream("x", { runtime: await openBench() })) types.push(event.type);
    const flowTypes = types.filter((type) => type.startsWith("flow_"));
    expect(flowTypes).toEqual(["flow_start", "flow_step_start", "flow_step_end", "flow_end"]);
    expect(types).toContain("message_update");
  });
});

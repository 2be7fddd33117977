import { describe, expect, expectTypeOf, test } from "vitest";
import {
  blackboard,
  debate,
  deepAgent,
  registerArchitecture,
  supervisor,
} from "../../../src/agents/architectures/index.ts";
import {
  Agent,
  HookEvent,
  HookManager,
  memoryStore,
  openRuntime,
  OrchestratorAgent,
  Sequential,
  sha256,
  tool,
} from "../../../src/entries/index.ts";
import { PromptHistory } from "../../../src/agents/context/prompt-history.ts";
import {
  agentSession,
  formatAgentId,
  formatRunId,
  formatSessionId,
  messageText,
  Transcript,
  userMessage,
  type HostedAgent,
  type Architecture,
  type ChatMessage,
  type HistoryKey,
  type HistoryProvider,
  type Model,
  type RunId,
} from "../../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../../src/testing/index.ts";
import { look, looks, scout } from "../scout.ts";

describe("invoke()", () => {
  test("invoke() runs without a runtime from the caller and returns the result", async () => {
    const { agent } = scout([looks, "Take an umbrella."]);
    const result = await agent.invoke("Where?");
    expectTypeOf(result.output).toEqualTypeOf<string>();
    expect(result).toMatchObject({
      status: "completed",
      output: "Take an umbrella.",
      turns: 2,
      agentId: "scout",
    });
  });

  test("invoke() with a session id continues that session, and without one starts a new session", async () => {
    const { agent, model } = scout(["one", "two", "three"]);
    const first = await agent.invoke("A");
    const second = await agent.invoke("B", { sessionId: first.sessionId });
    const third = await agent.invoke("C");
    expect(second.sessionId).toBe(first.sessionId);
    expect(third.sessionId).not.toBe(first.sessionId);
    const said = (call: number) => model.calls[call]?.messages.map(messageText);
    expect(said(1)).toEqual(["A", "one", "B"]);
    expect(said(2)).toEqual(["C"]);
  });

  test("invoke() accepts images, and the session keeps them", async () => {
    const { agent, model } = scout(["red", "as I said"]);
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AAAA" },
    } as const;
    const { sessionId } = await agent.invoke([{ type: "text", text: "Which colour?" }, image]);
    await agent.invoke("Sure?", { sessionId });
    const [message] = model.calls[0]?.messages ?? [];
    expect(message?.content).toEqual([{ type: "text", text: "Which colour?" }, image]);
    expect(model.calls[1]?.messages[0]).toEqual(message);
  });

  test("invoke() refuses an invalid input before a run exists", async () => {
    const { agent } = scout([]);
    await expect(agent.invoke({ question: 1 } as never)).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("invalid input of agent scout: expected a text"),
    });
  });

  test("invoke() returns a failure as a result and does not throw", async () => {
    const { agent } = scout([{ error: Object.assign(new Error("no"), { statusCode: 401 }) }]);
    expect(await agent.invoke("Where?")).toMatchObject({
      status: "failed",
      output: "",
      error: { code: "model_auth" },
    });
  });

  test("timeoutMs of invoke() is a deadline for the whole run", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ clock });
    const model = scriptedModel([{ text: "late", delayMs: 60_000 }], { clock });
    const agent = new Agent({ name: "slow", model });
    const coming = agent.invoke("Now", { runtime, timeoutMs: 1_000 });
    await clock.advance(1_500);
    expect(await coming).toMatchObject({ status: "deadline_exceeded" });
    await runtime.close();
  });

  test("B2: timeoutMs: null of invoke() means no timeout, and a deadline in the budget still applies", async () => {
    const clock = new FakeClock();
    const runtime = await openRuntime({ clock });
    const late = { text: "late", delayMs: 60_000 };
    const agent = new Agent({ name: "slow", model: scriptedModel([late, late], { clock }) });
    const unbounded = agent.invoke("Now", { runtime, timeoutMs: null });
    await clock.advance(60_000);
    expect(await unbounded).toMatchObject({ status: "completed" });
    const bounded = agent.invoke("Now", { runtime, timeoutMs: null, budget: { deadlineMs: 1_000 } });
    await clock.advance(1_500);
    expect(await bounded).toMatchObject({ status: "deadline_exceeded" });
    await runtime.close();
  });

  test("a role of an architecture uses its own model, or the main model if the role has no model", async () => {
    const main = scriptedModel(["from main"]);
    const critic = scriptedModel(["from critic"]);
    const both: Architecture = {
      name: "both",
      declaredWorkers: () => ({}),
      async *run(session, deps) {
        for (const role of ["critic", "nobody"]) {
          const { message } = await deps
            .scopeForWorker(role)
            .model.generate({ messages: [userMessage("hm")] });
          session.output += `${messageText(message)}; `;
          yield { type: "architecture_event", data: { architecture: "both", name: role, data: {} } };
        }
      },
    };
    const agent = new Agent({ name: "two", model: main, models: { critic }, architecture: both });
    expect((await agent.invoke("?")).output).toBe("from critic; from main; ");
  });

  test("the output of an architecture without messages is stored in the session as the answer", async () => {
    const echo: Architecture = {
      name: "echo",
      requiresModel: false,
      declaredWorkers: () => ({}),
      async *run(session, deps, prompt) {
        session.output = `${prompt} ${session.messages.length}`;
        session.metadata["heard"] = prompt;
        yield { type: "architecture_event", data: { architecture: "echo", name: "echo.heard", data: {} } };
        deps.ctx.check();
      },
    };
    const agent = new Agent({ name: "echo", architecture: echo });
    const { sessionId, metadata } = await agent.invoke("one");
    expect(metadata).toEqual({ heard: "one" });
    expect((await agent.invoke("two", { sessionId })).output).toBe("two 2");
  });
});

describe("stream()", () => {
  test("stream() yields every event and text delta in order", async () => {
    const { agent } = scout([{ text: "Hello there", deltas: ["Hello", " there"] }]);
    const stream = agent.stream("Hi");
    const seqs: number[] = [];
    let text = "";
    for await (const event of stream) {
      if ("seq" in event) seqs.push(event.seq);
      else if (event.type === "message_update") text += event.text;
    }
    expect(seqs).toEqual(seqs.map((_, index) => index));
    expect(text).toBe("Hello there");
    expect(await stream.result()).toMatchObject({ status: "completed", output: "Hello there" });
  });

  /** Builds an agent whose model answers once the gate opens, or fails when the run stops. */
  function gated() {
    const gate = Promise.withResolvers<void>();
    const answer = scriptedModel(["done"]);
    const model: Model = {
      provider: "gated",
      modelId: "gated",
      generate: async (request, { signal } = {}) => {
        const stopped = new Promise<never>((_resolve, reject) =>
          signal?.addEventListener("abort", () => reject(new Error("stopped"))),
        );
        await Promise.race([gate.promise, stopped]);
        return answer.generate(request);
      },
      async *stream(request, options) {
        yield { type: "finish", ...(await this.generate(request, options)) };
      },
    };
    return { gate, agent: new Agent({ name: "gated", model }) };
  }

  test("C3: leaving the loop over a stream does not stop the run", async () => {
    const { gate, agent } = gated();
    const stream = agent.stream("Hi");
    for await (const event of stream) if (event.type === "message_start") break;
    gate.resolve();
    expect(await stream.result()).toMatchObject({ status: "completed", output: "done" });
  });

  test("C3: leaving the loop over a stream cancels the run with cancelOnBreak", async () => {
    const { agent } = gated();
    const stream = agent.stream("Hi", { cancelOnBreak: true });
    for await (const event of stream) if (event.type === "message_start") break;
    expect(await stream.result()).toMatchObject({
      status: "cancelled",
      interruptionReason: "its reader left",
    });
  });

  test("a run accepts steering messages and follow-ups while it is streamed", async () => {
    const { agent, model } = scout([looks, "first", "second", "third"], {
      steering: "all",
      followUps: "one",
    });
    const stream = agent.stream("Hi");
    const run = await stream.run();
    await run.steer("hurry");
    await run.steer("please");
    await run.followUp("and then?");
    expect(await stream.result()).toMatchObject({ status: "completed", output: "second" });
    const said = model.calls.at(-1)?.messages.map(messageText) ?? [];
    expect(said.filter((text) => ["hurry", "please", "and then?"].includes(text))).toEqual([
      "hurry",
      "please",
      "and then?",
    ]);
  });
});

describe("construction of an agent", () => {
  test("an agent without a model is refused if its architecture requires one", () => {
    expect(() => new Agent({ name: "empty" })).toThrow(
      "agent empty has no model, but its architecture react requires one",
    );
  });

  test("an agent refuses two tools with the same name and maxTurns below 1", () => {
    expect(() => scout([], { tools: [look, look] })).toThrow("agent scout has two tools named look");
    expect(() => scout([], { maxTurns: 0 })).toThrow("invalid maxTurns 0 of agent scout");
  });

  test("an agent refuses two agents with the same name among its sub-agents, in every architecture", () => {
    const twin = (): Agent => new Agent({ name: "twin", model: scriptedModel([]) });
    const model = scriptedModel([]);
    const by = (architecture: Architecture) => () => new Agent({ name: "lead", model, architecture });
    const other = new Agent({ name: "other", model });
    const one = twin();
    const within = new Sequential({ name: "within", steps: [twin()] });
    const made = [
      () =>
        new OrchestratorAgent({
          name: "lead",
          model,
          subAgents: [
            { agent: one, key: "one" },
            { agent: twin(), key: "two" },
          ],
        }),
      () => new OrchestratorAgent({ name: "twin", model, subAgents: [{ agent: one }] }),
      () => new Agent({ name: "lead", model, subAgents: [one, twin()] }),
      () => new Sequential({ name: "lead", steps: [within, one] }),
      by(debate({ debaters: { one, other }, judge: twin() })),
      by(blackboard({ agents: { one }, decider: twin() })),
      by(supervisor({ workers: { one }, spawnable: twin() })),
      by(deepAgent({ subAgents: { one, two: twin() } })),
    ];
    for (const make of made) expect(make).toThrow("with its sub-agents, has two agents named twin");
    expect(by(supervisor({ workers: { one }, spawnable: one }))).not.toThrow();
  });

  test("an architecture can be registered and selected by name, and an unknown name lists the known ones", async () => {
    registerArchitecture("parrot", () => ({
      name: "parrot",
      requiresModel: false,
      declaredWorkers: () => ({}),
      // oxlint-disable-next-line require-yield
      async *run(session, _deps, prompt) {
        session.output = prompt;
      },
    }));
    expect((await new Agent({ name: "p", architecture: "parrot" }).invoke("Polly")).output).toBe("Polly");
    expect(() => registerArchitecture("react", () => ({}) as never)).toThrow(
      "architecture react already exists",
    );
    expect(() => scout([], { architecture: "zen" })).toThrow(
      /there is no architecture zen; there are: .*react.*parrot/,
    );
  });

  test("with() returns a copy of the agent with the given changes", async () => {
    const { agent } = scout(["never"]);
    const other = agent.with({ name: "other", model: scriptedModel(["changed"]) });
    expect(await other.invoke("?")).toMatchObject({ output: "changed", agentId: "other" });
    expect(other.tools).toEqual(agent.tools);
  });

  test("hooks receive the start and end of every turn", async () => {
    const hooks = new HookManager();
    const seen: string[] = [];
    hooks.on(HookEvent.STEP_START, ({ step }) => void seen.push(`start ${step}`));
    hooks.on(HookEvent.STEP_END, ({ step }) => void seen.push(`end ${step}`));
    const { agent } = scout([looks, "done"], { hooks });
    await agent.invoke("Go");
    expect(seen).toEqual(["start 1", "end 1", "start 2", "end 2"]);
  });
});

describe("history of an agent", () => {
  test("PromptHistory returns the messages of its history provider", async () => {
    const sessionId = formatSessionId("one");
    const said = ["a", "b", "c"].map((text) => userMessage(text));
    const history = new PromptHistory({
      agentId: formatAgentId({ name: "scout" }),
      history: { read: async () => said },
    });
    expect([...(await history.getPromptWindow(sessionId))]).toEqual(said);
    const live = agentSession({ id: sessionId, instructions: "", messages: Transcript.of(said) });
    const open = new PromptHistory({
      agentId: formatAgentId({ name: "scout" }),
      history: { read: () => live.messages },
    });
    expect(open.getPromptWindow(sessionId)).toBe(live.messages);
  });

  test("a custom history provider is read before each run and appended to once after it", async () => {
    const table = new Map<string, readonly ChatMessage[]>();
    const key = ({ agentId, sessionId }: HistoryKey) => `${agentId} ${sessionId}`;
    const appended: RunId[] = [];
    const provider: HistoryProvider = {
      read: async (at) => table.get(key(at)) ?? [],
      append: async (at, runId, messages) => {
        appended.push(runId);
        table.set(key(at), [...(table.get(key(at)) ?? []), ...messages]);
      },
      count: async (at) => table.get(key(at))?.length ?? 0,
      clear: async (at) => void table.delete(key(at)),
      clearRun: async () => undefined,
    };
    const { agent, model } = scout(["one", "two"], { history: provider });
    const { sessionId } = await agent.invoke("A");
    await agent.invoke("B", { sessionId });
    expect(model.calls[1]?.messages.map(messageText)).toEqual(["A", "one", "B"]);
    expect(appended).toHaveLength(2);
    expect(await provider.count({ agentId: agent.id, sessionId })).toBe(4);
  });
});

describe("messages and signals to an agent", () => {
  test("an agent answers each caller separately, and the message of one caller is in no other conversation", async () => {
    const store = memoryStore({ hash: sha256 });
    const runtime = await openRuntime({ store });
    const { agent, model } = scout([
      (request) => `re: ${messageText(request.messages.at(-1) ?? userMessage(""))}`,
      (request) => `re: ${messageText(request.messages.at(-1) ?? userMessage(""))}`,
    ]);
    const asker = (name: string): HostedAgent => ({
      id: formatAgentId({ name }),
      run: async (ctx) => {
        const outcome = await ctx.ask(agent.id, `from ${name}`);
        return outcome.kind === "replied" ? outcome.body : outcome.kind;
      },
    });
    runtime.register(agent);
    const runs = [await runtime.submit(asker("one"), null), await runtime.submit(asker("two"), null)];
    const outputs = await Promise.all(runs.map(async (run) => (await run.result()).output));
    expect(outputs).toEqual(["re: from one", "re: from two"]);
    for (const { messages } of model.calls) expect(messages).toHaveLength(1);
    await runtime.close();
  });

  test("resume() continues a failed run, and signal() reaches a waiting run", async () => {
    const runtime = await openRuntime();
    const { agent } = scout([{ error: Object.assign(new Error("no"), { statusCode: 401 }) }, "now it works"]);
    const failed = await agent.invoke("Go", { runtime });
    expect(failed.status).toBe("failed");
    expect(await agent.resume(failed.runId, { runtime })).toMatchObject({
      status: "completed",
      output: "now it works",
    });
    const waits = tool({
      name: "wait",
      description: "Waits for the word",
      inputSchema: {},
      suspends: true,
      execute: async (_input, { ctx }) => JSON.stringify(await ctx.waitForSignal("word")),
    });
    const waiter = new Agent({
      name: "waiter",
      model: scriptedModel([{ toolCalls: [{ name: "wait", input: {} }] }, "thanks"]),
      tools: [waits],
    });
    const run = await waiter.submit("Go", { runtime });
    await waiter.signal(run.runId, "word", "abracadabra", { runtime });
    expect(await run.result()).toMatchObject({ output: "thanks" });
    await expect(waiter.signal(formatRunId("none"), "word", 1, { runtime })).rejects.toMatchObject({
      code: "not_found",
    });
    await runtime.close();
  });
});

describe("the channel of an input", () => {
  test("the channel of an input selects the prompt variant and is recorded in the input event", async () => {
    const asked: (string | null)[] = [];
    const instructions = {
      build: async ({ channel }: { readonly channel: string | null }) => {
        asked.push(channel);
        return { text: `You answer by ${channel}.`, fromCache: false };
      },
    };
    const { agent, model } = scout(["short", "long"], { instructions });
    const stream = agent.stream("Hi", { channel: "sms" });
    const inputs: unknown[] = [];
    for await (const event of stream) if (event.type === "input") inputs.push(event.data);
    await agent.invoke("Hi");
    expect(asked).toEqual(["sms", null]);
    expect(inputs).toEqual([{ input: "Hi", channel: "sms" }]);
    expect(model.calls[0]?.messages[0]).toMatchObject({ role: "system", content: "You answer by sms." });
  });
});

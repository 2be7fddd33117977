import { describe, expect, test } from "vitest";
import { planAndExecute, selfRefine, treeOfThoughts } from "../../../src/entries/architectures.ts";
import { Agent, openRuntime, tool, type AgentOptions } from "../../../src/entries/index.ts";
import {
  HistoryRetention,
  type ChatMessage,
  type ModelRequest,
  type RecordedRequest,
  type RunHandle,
  type Runtime,
  type Store,
} from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptedModel } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../two-stores.ts";

removeStoresAfterEach();

const lookUp = tool({
  name: "look_up",
  description: "Looks a word up.",
  inputSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] } as const,
  execute: async ({ word }) => `${word}: a word`,
});
const calls = (...words: readonly string[]) => ({
  text: "I look.",
  toolCalls: words.map((word) => ({ name: "look_up", input: { word } })),
});

async function requestsOf(run: Pick<RunHandle, "events" | "modelRequest">): Promise<RecordedRequest[]> {
  const seqs: number[] = [];
  for await (const event of run.events({ follow: false, types: ["message_start"] }))
    if ("seq" in event) seqs.push(event.seq);
  return Promise.all(seqs.map((seq) => run.modelRequest(seq)));
}

interface Seen {
  readonly instructions: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly string[];
}

const sentTo = ({ calls: all }: ScriptedModel): readonly Seen[] => all.map(seenIn);

function seenIn({ messages, tools = [] }: ModelRequest): Seen {
  const [first, ...rest] = messages;
  const hasSystem = first?.role === "system";
  return {
    instructions: hasSystem ? first.content : "",
    messages: hasSystem ? rest : messages,
    tools: tools.map(({ name }) => name),
  };
}

function valueOf<Value>(part: { readonly state: string; readonly value?: Value }): Value | string {
  return part.state === "recorded" ? (part.value as Value) : part.state;
}

const recorded = (requests: readonly RecordedRequest[]): readonly unknown[] =>
  requests.map(({ instructions, messages, tools, isProven }) => ({
    instructions: valueOf(instructions),
    messages: valueOf(messages),
    tools: tools.state === "recorded" ? tools.value.map(({ name }) => name) : tools.state,
    isProven,
  }));

const proven = (seen: readonly Seen[]): readonly unknown[] =>
  seen.map((each) => ({ ...each, isProven: true }));

const agentWith = (model: ScriptedModel, options: Partial<AgentOptions> = {}): Agent =>
  new Agent({ name: "clerk", model, instructions: "Be brief.", tools: [lookUp], ...options });

describe.each(twoStores)("modelRequest() on %s", (_name, prepare) => {
  async function withRuntime(use: (runtime: Runtime, store: Store) => Promise<void>): Promise<void> {
    const store = await (await prepare())();
    const runtime = await openRuntime({ store });
    await use(runtime, store);
    await runtime.close();
    await store.close();
  }

  test("J11: modelRequest() returns every call of a conversation with tools, results and steering as it was sent", async () => {
    const model = scriptedModel([calls("a"), calls("b", "c"), "Done.", "Again."]);
    const steer = async (): Promise<string> => {
      await run?.steer("Mind the time.");
      return "steered";
    };
    const nudge = tool({
      name: "nudge",
      description: "Sends a message.",
      inputSchema: { type: "object", properties: {} } as const,
      execute: steer,
    });
    let run: RunHandle | undefined;
    const steered = scriptedModel([{ toolCalls: [{ name: "nudge", input: {} }] }, calls("x"), "Done."]);
    await withRuntime(async (runtime) => {
      const agent = agentWith(model);
      const first = await agent.invoke("What is a?", { runtime });
      const second = await agent.invoke([{ type: "text", text: "And?" }], {
        runtime,
        sessionId: first.sessionId,
      });
      const handles = [await runtime.find(first.runId), await runtime.find(second.runId)];
      const found = await Promise.all(handles.map((handle) => requestsOf(handle as RunHandle)));
      expect(recorded(found.flat())).toEqual(proven(sentTo(model)));
      run = await runtime.submit(agentWith(steered, { name: "steered", tools: [nudge, lookUp] }), "Go");
      await run.result();
      expect(recorded(await requestsOf(run))).toEqual(proven(sentTo(steered)));
    });
  });

  test("J11: modelRequest() returns the calls of architectures in other roles and in branches as they were sent", async () => {
    const plan = scriptedModel(['["one","two"]', "1", "2", "Both."]);
    const refine = scriptedModel(["Draft", "Too short", "Longer draft", "LGTM", "x", "y"]);
    const talk = scriptedModel(Array.from({ length: 60 }, (_each, index) => `point ${index}`));
    await withRuntime(async (runtime) => {
      for (const [model, architecture] of [
        [plan, planAndExecute()],
        [refine, selfRefine()],
        [talk, treeOfThoughts({ branches: 3, depth: 2, parallel: true })],
      ] as const) {
        const run = await runtime.submit(agentWith(model, { architecture, name: architecture.name }), "Go");
        await run.result();
        const requests = await requestsOf(run);
        expect(requests.length).toBe(model.calls.length);
        // Branches call the model in any order.
        const byText = (list: readonly unknown[]): string[] =>
          list.map((each) => JSON.stringify(each)).toSorted();
        expect(byText(recorded(requests))).toEqual(byText(proven(sentTo(model))));
      }
    });
  });

  test("J11: an unchanged turn adds nothing to the record of model requests; instructions and tools are recorded once", async () => {
    const model = Object.assign(scriptedModel([calls("a"), calls("b"), calls("c"), "Done."]), {
      contextWindow: 9_000,
    });
    await withRuntime(async (runtime, store) => {
      const run = await runtime.submit(agentWith(model), "Go");
      await run.result();
      const requests: unknown[] = [];
      for await (const commit of store.journal.read(run.runId)) requests.push(...(commit.requests ?? []));
      expect(requests).toEqual([{ taskId: "t0", address: "1", frame: { contextWindow: 9_000 } }]);
      expect((await requestsOf(run)).map(({ contextWindow }) => contextWindow)).toEqual(Array(4).fill(9_000));
    });
  });

  test("J11: modelRequest() names ephemeral messages, changes of middleware, settings and changed tools", async () => {
    const model = scriptedModel([calls("a"), "Done."]);
    const agent = agentWith(model, {
      ephemeral: [
        {
          name: "clock",
          messages: async () => [{ role: "user", content: [{ type: "text", text: "It is late." }] }],
        },
      ],
      middleware: [
        {
          name: "redact",
          chat: async (context, next) => {
            const { messages } = context.request;
            context.request = { ...context.request, messages: [...messages].map((each) => ({ ...each })) };
            await next();
          },
        },
      ],
      prepareStep: ({ turn }) => (turn === 2 ? { tools: [] } : undefined),
    });
    await withRuntime(async (runtime) => {
      const run = await runtime.submit(agent, "Go", { settings: { temperature: 0.5 } });
      await run.result();
      const [first, second] = await requestsOf(run);
      expect(first).toMatchObject({
        ephemeralMessages: 1,
        changedByMiddleware: ["messages"],
        isProven: true,
      });
      expect(first?.settings).toEqual({ temperature: 0.5 });
      expect(second?.settings).toEqual({ temperature: 0.5, toolChoice: "none" });
      expect(JSON.stringify([first, second]).includes("It is late.")).toBe(false);
    });
  });

  test("J11: modelRequest() names what retention has erased, and the hashes stay", async () => {
    const model = scriptedModel([calls("a"), "Done."]);
    await withRuntime(async (runtime) => {
      const run = await runtime.submit(agentWith(model), "Go", { retention: HistoryRetention.NONE });
      await run.result();
      const requests = await requestsOf(run);
      expect(
        requests.map(({ instructions, tools, messages, reply }) => [
          instructions,
          tools,
          messages,
          reply?.usage.inputTokens,
        ]),
      ).toEqual(
        requests.map(() => [
          { state: "erased", reason: "retention" },
          { state: "erased", reason: "retention" },
          { state: "erased", reason: "retention" },
          expect.any(Number),
        ]),
      );
    });
  });

  test("J11: another worker that takes over continues the record of model requests, and a fork reads it as well", async () => {
    const asks = tool({
      name: "ask",
      description: "Asks.",
      inputSchema: { type: "object", properties: {} } as const,
      needsApproval: true,
      execute: async () => "asked",
    });
    const script = [{ toolCalls: [{ name: "ask", input: {} }] }, "Done."] as const;
    const reopen = await prepare();
    const [one, two] = [scriptedModel(script), scriptedModel(script.slice(1))];
    const agentOf = (model: ScriptedModel): Agent =>
      agentWith(Object.assign(model, { contextWindow: 5_000 }), { tools: [asks] });
    const before = await openRuntime({ store: await reopen() });
    const begun = await before.submit(agentOf(one), "Go");
    await begun.untilPersonIsNeeded();
    await before.close();
    const store = await reopen();
    const after = await openRuntime({ store });
    after.register(agentOf(two));
    const run = (await after.find(begun.runId)) as RunHandle;
    const [question] = await run.pendingApprovals();
    await run.approve(question?.approvalId ?? "", { decision: "approved" });
    await run.result();
    const requests = await requestsOf(run);
    expect(recorded(requests)).toEqual(proven([...sentTo(one), ...sentTo(two)]));
    expect(requests.map(({ contextWindow }) => contextWindow)).toEqual([5_000, 5_000]);
    const fork = await run.fork({ at: requests[1]?.seq ?? 0 });
    expect(recorded([await fork.modelRequest(requests[0]?.seq ?? 0)])).toEqual(proven(sentTo(one)));
    await after.close();
    await store.close();
  });

  test("modelRequest() refuses a seq that starts no model call, and says what the event is", async () => {
    await withRuntime(async (runtime) => {
      const run = await runtime.submit(agentWith(scriptedModel(["Done."])), "Go");
      await run.result();
      await expect(run.modelRequest(0)).rejects.toThrow(
        /event 0 of run .* is run_start; expected the seq of/u,
      );
      await expect(run.modelRequest(9_999)).rejects.toThrow("has no such event");
      await expect(run.modelRequest(-1)).rejects.toThrow("invalid seq -1");
    });
  });
});

import { expect, it } from "vitest";
import {
  MiddlewareTermination,
  Transcript,
  userMessage,
  type HostedAgent,
  type AfterCall,
  type BeforeCall,
  type CallPath,
  type CallVerdict,
  type ChatContext,
  type Delta,
  type Event,
  type GatedCall,
  type LlmRequest,
  type RunContext,
  type ToolPipeline,
} from "../../../src/kernel/index.ts";
import { MiddlewarePipeline, type Layer } from "../../../src/entries/middleware.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";
import { agent, readAll, setUp, settle, simpleTool, text, typesOf, until } from "../runtime-setup.ts";

const prices = { find: () => ({ inputUsd: 1e-6, outputUsd: 1e-6 }) };
const request: LlmRequest = { transcript: Transcript.of([userMessage("hello")]), maxOutputTokens: 100 };
const usage = { inputTokens: 10, outputTokens: 5 };

function chatAgent(
  script: readonly ScriptStep[],
  callPath: CallPath,
  code?: (ctx: RunContext) => Promise<string>,
) {
  const model = scriptedModel(script);
  const run = code ?? (async (ctx: RunContext) => JSON.stringify((await ctx.llm(request)).message.content));
  return { model, worker: agent("talker", run, { models: { main: model }, callPath }) };
}

it("J7: the journal records the reply as chat middleware left it, and middleware does not run again on replay", async () => {
  const { runtime, open, events, store } = await setUp({ prices, suspendAfterMs: 0 });
  let calls = 0;
  const chat = {
    process: async (context: ChatContext, next: () => Promise<void>) => {
      calls++;
      await next();
      if (context.result !== undefined)
        context.result = {
          ...context.result,
          message: { role: "assistant", content: [{ type: "text", text: "changed" }] },
        };
    },
  };
  const { model, worker } = chatAgent(
    [{ text: "original", usage }],
    { model: { around: chat } },
    async (ctx) => {
      const { message } = await ctx.llm(request);
      await ctx.waitForSignal("go");
      return JSON.stringify(message.content);
    },
  );
  const run = await runtime.submit(worker, null);
  await settle();
  await runtime.close();
  const second = await open({ store });
  second.register(worker);
  await (await second.find(run.runId))?.signal("go");
  const { output, turns } = (await (await second.find(run.runId))?.result()) ?? {};
  expect({ output, turns, calls, modelCalls: model.calls.length }).toEqual({
    output: JSON.stringify([{ type: "text", text: "changed" }]),
    turns: 1,
    calls: 1,
    modelCalls: 1,
  });
  const ended = (await events(run.runId)).find(({ type }) => type === "message_end") as Event<"message_end">;
  expect(ended.data.message.content).toEqual([{ type: "text", text: "changed" }]);
});

it("B1, B3, M2: each model call that middleware makes has its own reservation and is paid", async () => {
  const { runtime, events } = await setUp({ prices });
  const chat = {
    process: async (_context: ChatContext, next: () => Promise<void>) => {
      await next();
      await next();
    },
  };
  const { model, worker } = chatAgent(
    [
      { text: "no", usage },
      { text: "yes", usage },
    ],
    { model: { around: chat } },
  );
  const run = await runtime.submit(worker, null, { budget: { maxTokens: 400, maxCostUsd: 1 } });
  const { output, usage: used, costUsd, turns } = await run.result();
  expect(output).toContain("yes");
  expect({ used: used.inputTokens + used.outputTokens, costUsd, turns, calls: model.calls.length }).toEqual({
    used: 30,
    costUsd: 30e-6,
    turns: 1,
    calls: 2,
  });
  expect(typesOf(await events(run.runId)).filter((type) => type === "message_end")).toHaveLength(1);
});

it("a reply that middleware makes itself costs nothing, and readers of a stream receive it as one delta", async () => {
  const { runtime, store } = await setUp({ prices });
  const chat = {
    process: async (context: ChatContext) => {
      context.result = {
        message: { role: "assistant", content: [{ type: "text", text: "known" }] },
        stopReason: "stop",
        usage: {
          inputTokens: 9,
          outputTokens: 9,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          reasoningTokens: 0,
        },
      };
    },
  };
  const { model, worker } = chatAgent([], { model: { around: chat } });
  const deltas: Delta[] = [];
  const putDelta = store.events.putDelta.bind(store.events);
  store.events.putDelta = (lease, delta) => {
    deltas.push(delta);
    putDelta(lease, delta);
  };
  const run = await runtime.submit(worker, null, { budget: { maxCostUsd: 0.001 }, streaming: true });
  const { costUsd, turns, status } = await run.result();
  expect({ costUsd, turns, status, calls: model.calls.length }).toEqual({
    costUsd: 0,
    turns: 0,
    status: "completed",
    calls: 0,
  });
  expect(deltas).toMatchObject([{ type: "message_update", kind: "text", offset: 0, text: "known" }]);
});

it("readers of a stream receive the deltas that middleware passes, and at the end what it has held back", async () => {
  const { runtime, store } = await setUp({ prices });
  let held = "";
  const chat = {
    process: async (context: ChatContext, next: () => Promise<void>) => {
      context.filters.push({
        push: (delta) => {
          held += delta.text;
          return [];
        },
        flush: () => [{ type: "text_delta", text: held.toUpperCase() }],
      });
      await next();
    },
  };
  const { worker } = chatAgent([{ text: "quiet words", usage }], { model: { around: chat } });
  const published: Delta[] = [];
  const putDelta = store.events.putDelta.bind(store.events);
  store.events.putDelta = (lease, delta) => {
    published.push(delta);
    putDelta(lease, delta);
  };
  const run = await runtime.submit(worker, null, { streaming: true });
  await run.result();
  expect(published.map((delta) => ("text" in delta ? delta.text : delta.type))).toEqual(["QUIET WORDS"]);
});

it("M3: a run that middleware terminates ends as guardrail_tripped, and its model call is paid", async () => {
  const { runtime } = await setUp({ prices });
  const chat = {
    process: async (_context: ChatContext, next: () => Promise<void>) => {
      await next();
      throw new MiddlewareTermination("not in this house", { by: "censor" });
    },
  };
  const { worker } = chatAgent([{ text: "rude", usage }], { model: { around: chat } });
  const { status, costUsd, error: failure } = await (await runtime.submit(worker, null)).result();
  expect({ status, costUsd, message: failure?.message }).toEqual({
    status: "guardrail_tripped",
    costUsd: 15e-6,
    message: "not in this house",
  });
});

it("ephemeral sources are called first, then middleware, then the model, and an error of middleware fails the run", async () => {
  const { runtime } = await setUp({ prices });
  const noted: string[] = [];
  const layer = (name: string): Layer => ({
    name,
    chat: async (_context, next) => {
      noted.push(name);
      await next();
      noted.push(`${name} after`);
    },
  });
  const source = {
    name: "screen",
    messages: async () => {
      noted.push("ephemeral");
      return [userMessage("a window")];
    },
  };
  const answer = () => {
    noted.push("model");
    return { text: "hi", usage };
  };
  const ask = async (ctx: RunContext): Promise<string> =>
    (await ctx.llm({ ...request, ephemeral: [source] })).stopReason;
  const path = new MiddlewarePipeline([layer("outer"), layer("inner")]).callPath() ?? {};
  const { worker } = chatAgent([answer], path, ask);
  expect((await (await runtime.submit(worker, null)).result()).status).toBe("completed");
  expect(noted).toEqual(["ephemeral", "outer", "inner", "model", "inner after", "outer after"]);
  const broken = { process: () => Promise.reject(new Error("boom")) };
  const failing = agent("failing", ask, {
    models: { main: scriptedModel([]) },
    callPath: { model: { around: broken } },
  });
  expect((await (await runtime.submit(failing, null)).result()).status).toBe("failed");
});

function toolAgent(callPath: CallPath, executed: unknown[], needsApproval = false): HostedAgent {
  const write = simpleTool({
    name: "write",
    needsApproval,
    execute: async (input) => {
      executed.push(input);
      return text(`wrote ${JSON.stringify(input)}`);
    },
  });
  const code = async (ctx: RunContext): Promise<string> => {
    const results: string[] = [];
    for (const input of [{ at: 1 }, { at: 2 }]) {
      const { output } = await ctx.tool({ callId: "same", toolName: "write", input });
      results.push(output.type === "text" ? output.text : "");
    }
    return results.join(" | ");
  };
  return agent("caller", code, { tools: [write], callPath });
}

/** A pipeline with one check before tool calls and, if given, one after them. */
function rules(
  decide: (call: GatedCall) => CallVerdict | undefined,
  after?: AfterCall["decide"],
): ToolPipeline {
  return { before: [{ name: "rules", decide }], ...(after && { after: [{ name: "rules", decide: after }] }) };
}

it("function middleware may change the arguments and the result of a tool call", async () => {
  const { runtime } = await setUp();
  const executed: unknown[] = [];
  const path: CallPath = {
    tool: {
      around: {
        process: async (context, next) => {
          context.arguments = { ...context.arguments, by: context.agentName };
          await next();
          if (context.result !== undefined)
            context.result = { ...context.result, output: { type: "text", text: "ok" } };
        },
      },
    },
  };
  const { output } = await (await runtime.submit(toolAgent(path, executed), null)).result();
  expect(output).toBe("ok | ok");
  expect(executed).toEqual([
    { at: 1, by: "caller" },
    { at: 2, by: "caller" },
  ]);
});

it("J7: a check of a tool call sees the earlier calls of the task, may edit arguments and results, and may deny", async () => {
  const { runtime, events } = await setUp();
  const executed: unknown[] = [];
  const pipeline = rules(
    ({ history, call }) =>
      history.length === 0
        ? { decision: "edit", input: { at: 10 } }
        : { decision: "deny", by: "rule", reason: `${call.toolName} once only` },
    (_call, result) => ({
      decision: "answer",
      result: { ...result, output: { type: "text", text: "edited" } },
    }),
  );
  const run = await runtime.submit(toolAgent({ tool: pipeline }, executed), null);
  expect((await run.result()).output).toBe("edited | [denied: write once only]");
  expect(executed).toEqual([{ at: 10 }]);
  expect(typesOf(await events(run.runId))).toContain("permission_deny");
});

it("a check before a tool call that throws denies the call", async () => {
  const { runtime } = await setUp();
  const executed: unknown[] = [];
  const pipeline = rules(() => {
    throw new Error("broken");
  });
  const { output } = await (await runtime.submit(toolAgent({ tool: pipeline }, executed), null)).result();
  expect(output).toBe("[denied: rules failed: broken] | [denied: rules failed: broken]");
  expect(executed).toEqual([]);
});

it("the question of a check waits over a restart without a second check, and an answer handler decides without a person", async () => {
  const { runtime, open, store } = await setUp({ suspendAfterMs: 0 });
  const executed: unknown[] = [];
  const remembered: unknown[] = [];
  let evaluations = 0;
  const rule: BeforeCall = {
    name: "rule",
    decide: ({ call }) => {
      evaluations++;
      const { at } = call.input as { at: number };
      if (at === 1) return { decision: "edit", input: { at: 11 } };
      if (at === 11) return { decision: "ask", by: "rule", reason: "first" };
      return {
        decision: "ask",
        by: "rule",
        reason: "second",
        answer: async ({ input }) => ({
          decision: "approved",
          input: { ...(input as object), handled: true },
        }),
      };
    },
    remember: async ({ facts }) => void remembered.push(facts.userId),
  };
  const worker = toolAgent({ tool: { before: [rule] } }, executed);
  const run = await runtime.submit(worker, null, { userId: "ada" });
  await until(async () => typesOf(await readAll(store, run.runId)).includes("approval_request"));
  await settle();
  await runtime.close();
  const second = await open();
  second.register(worker);
  const handle = await second.find(run.runId);
  const approvalRequest = (await readAll(store, run.runId)).find(
    ({ type }) => type === "approval_request",
  ) as Event<"approval_request">;
  expect(approvalRequest.data).toMatchObject({ input: { at: 11 }, reason: "first" });
  await handle?.approve(approvalRequest.data.approvalId, { decision: "approved", remember: true });
  expect((await handle?.result())?.output).toBe('wrote {"at":11} | wrote {"at":2,"handled":true}');
  // One evaluation per call, and one more for each edit of its arguments: by the entry, and by the handler.
  expect({ evaluations, remembered }).toEqual({ evaluations: 4, remembered: ["ada"] });
});

it("R13: an observer receives each event once, and result() resolves after the observer has settled", async () => {
  const { runtime, open } = await setUp({ suspendAfterMs: 0 });
  const types: string[] = [];
  let settledAfterEnd = false;
  const observer = {
    observe: (event: Event) => void types.push(event.type),
    settled: async () => {
      await settle();
      settledAfterEnd = types.includes("run_end");
    },
  };
  const worker = agent(
    "observed",
    async (ctx) => {
      await ctx.step("one", async () => 1);
      await ctx.waitForSignal("go");
      return "done";
    },
    { callPath: { observer } },
  );
  const run = await runtime.submit(worker, null);
  await settle();
  await runtime.close();
  const second = await open();
  second.register(worker);
  const handle = await second.find(run.runId);
  await handle?.signal("go");
  await handle?.result();
  expect(settledAfterEnd).toBe(true);
  for (const type of ["task_start", "task_end", "run_end"])
    expect(types.filter((each) => each === type)).toHaveLength(1);
});

import {
  answerIfLive,
  assistantMessage,
  messageText,
  Priority,
  toolMessage,
  Transcript,
  userMessage,
  type HostedAgent,
  type ApprovalDecision,
  type Event,
  type Guardrail,
  type JsonValue,
  type ModelRequest,
  type RunContext,
} from "../../src/kernel/index.ts";
import { llmJudge } from "../../src/assembly/guardrails.ts";
import { Agent, permissions } from "../../src/entries/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { agent, agentId, simpleTool, text } from "./runtime-setup.ts";
import type { Workload } from "./simulated-crash.ts";

/** Number of calls to the outside, by description of the call. */
export type World = Map<string, number>;

function countCall(world: World, call: string): void {
  world.set(call, (world.get(call) ?? 0) + 1);
}

function toolLoop(world: World): Workload {
  const look = simpleTool({
    name: "look",
    execute: async (input) => {
      countCall(world, `look ${JSON.stringify(input)}`);
      return text("seen");
    },
  });
  const loop = async (ctx: RunContext): Promise<string> => {
    let transcript = Transcript.of([userMessage("go")]);
    for (let turn = 1; ; turn++) {
      ctx.check();
      ctx.emitEvent({ type: "turn_start", data: { turn } });
      const { message, stopReason } = await ctx.llm({ transcript });
      transcript = transcript.append(message);
      if (stopReason !== "tool_calls") return "done";
      const calls = message.content.filter((part) => part.type === "tool_call");
      const results = await ctx.tools(calls);
      transcript = transcript.append(
        toolMessage(
          calls.map(({ callId, toolName }, index) => ({
            type: "tool_result",
            callId,
            toolName,
            output: results[index]?.output ?? { type: "text", text: "" },
            isError: false,
          })),
        ),
      );
      ctx.emitEvent({ type: "turn_end", data: { turn, stopReason, toolCalls: calls.length } });
    }
  };
  const script = ({ messages }: { messages: readonly unknown[] }) => {
    countCall(world, `model ${messages.length}`);
    if (messages.length >= 5) return "done";
    return { toolCalls: [1, 2].map((n) => ({ name: "look", input: { n: n * messages.length } })) };
  };
  return {
    agents: () => [
      agent("loop", loop, { tools: [look], models: { main: scriptedModel(Array(9).fill(script)) } }),
    ],
    options: { prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } },
  };
}

function spawnTree(world: World): Workload {
  const level = (depth: number): HostedAgent =>
    agent(
      `level${depth}`,
      async (ctx) => {
        if (depth === 3) return ctx.step("leaf", async () => (countCall(world, `leaf ${ctx.taskId}`), 1));
        const handles = [];
        for (const child of [1, 2]) {
          const spawned = await ctx.spawn(agentId(`level${depth + 1}`), child);
          if (spawned.kind === "spawned") handles.push(spawned.handle);
        }
        const outcomes = await ctx.joinAll(handles);
        return outcomes.reduce((sum, { output }) => sum + Number(output), 0);
      },
      depth === 3 ? {} : { subAgents: [level(depth + 1)] },
    );
  return { agents: () => [level(1)] };
}

function askAndReply(world: World): Workload {
  const answerer = agent("answerer", async (ctx, inbox) => {
    for (const message of inbox.messages) {
      if (message.replyTo === undefined) continue;
      const answer = await ctx.step("think", async () => (countCall(world, "think"), 42));
      await ctx.reply(message, answer);
    }
  });
  const caller = agent("caller", async (ctx) => {
    const answer = await ctx.ask(answerer.id, "how many?");
    await ctx.send(answerer.id, "thanks");
    return answer.kind === "replied" ? answer.body : answer.kind;
  });
  return { agents: () => [caller, answerer] };
}

/** Three messages of one sender, of which the second fails at first and is delivered again, and a message of another sender that does not wait for it. */
function sendAndRetry(world: World): Workload {
  const clerk = agent("clerk", async (ctx, inbox) => {
    for (const { body, sentAt } of inbox.messages) {
      await ctx.step("work", async () => (countCall(world, `work ${JSON.stringify(body)}`), 1));
      if (body === "bad" && (await ctx.now()) - sentAt < 1_000) throw new Error("not yet");
    }
  });
  const other = agent("other", async (ctx) => ctx.send(clerk.id, "beside"));
  const sender = agent(
    "sender",
    async (ctx) => {
      for (const body of ["good", "bad", "next"]) await ctx.send(clerk.id, body);
      const spawned = await ctx.spawn(other.id, null);
      return spawned.kind === "spawned" ? (await ctx.join(spawned.handle)).status : spawned.kind;
    },
    { subAgents: [other] },
  );
  return {
    agents: () => [sender, clerk],
    options: { runRetry: { maxRetries: 0 } },
    isComplete: (runs) => runs.length === 6,
  };
}

function waiting(world: World): Workload {
  let isSignalled = false;
  const patient = agent("patient", async (ctx) => {
    const before = await ctx.now();
    await ctx.sleepUntil(before + 1_000);
    const signal = await ctx.waitForSignal("go");
    const late = await ctx.waitForSignal("never", { timeoutMs: 500 });
    return ctx.step("end", async () => (countCall(world, "end"), [signal ?? null, late === undefined]));
  });
  return {
    agents: () => [patient],
    interact: async (handle) => {
      if (isSignalled) return;
      isSignalled = true;
      await handle.signal("go", "now");
    },
  };
}

function preemption(world: World): Workload {
  const low = agent("low", async (ctx) => {
    const parts = [];
    for (const part of [1, 2, 3])
      parts.push(await ctx.step(`part ${part}`, async () => (countCall(world, `part ${part}`), part)));
    return parts;
  });
  const high = agent("high", async (ctx) =>
    ctx.step("urgent", async () => (countCall(world, "urgent"), "urgent")),
  );
  const parent = agent(
    "parent",
    async (ctx) => {
      const one = await ctx.spawn(low.id, null, { priority: Priority.LOW });
      const two = await ctx.spawn(high.id, null, { priority: Priority.HIGH });
      if (one.kind === "refused" || two.kind === "refused") return "refused";
      const outcomes = await ctx.joinAll([one.handle, two.handle]);
      return outcomes.map(({ output }) => output);
    },
    { subAgents: [low, high] },
  );
  return { agents: () => [parent], submit: { spawnBudget: { maxAgents: 2, allowPreempt: true } } };
}

function approval(world: World): Workload {
  const wire = simpleTool({
    name: "wire",
    needsApproval: true,
    execute: async (input) => (countCall(world, `wire ${JSON.stringify(input)}`), text("sent")),
  });
  const clerk = agent(
    "clerk",
    async (ctx) => {
      const { output } = await ctx.tool({ callId: "1", toolName: "wire", input: { usd: 5 } });
      return output.type === "text" ? output.text : null;
    },
    { tools: [wire] },
  );
  return {
    agents: () => [clerk],
    interact: approving({ decision: "approved" }),
  };
}

/** Agent code that asks a person for approval before it acts. */
function question(world: World): Workload {
  const request = { toolName: "form", callId: "1", input: { message: "Name?" }, reason: "a name is needed" };
  const clerk = agent("clerk", async (ctx) => {
    const decision = await ctx.approval(request);
    return ctx.step("send", async () => (countCall(world, `send ${JSON.stringify(decision)}`), "sent"));
  });
  return { agents: () => [clerk], interact: approving({ decision: "approved", input: { name: "Ada" } }) };
}

function approving(decision: ApprovalDecision): NonNullable<Workload["interact"]> {
  return async (handle, events) => {
    const request = events.find(({ type }) => type === "approval_request") as
      | Event<"approval_request">
      | undefined;
    if (request !== undefined) await answerIfLive(handle, request.data.approvalId, decision);
  };
}

/** A tool call with a guardrail model before and after it and an approval in between, and guardrails for the input and the output. */
function guarded(world: World): Workload {
  const wire = simpleTool({
    name: "wire",
    needsApproval: true,
    execute: async (input) => (countCall(world, `wire ${JSON.stringify(input)}`), text("sent")),
  });
  const verdict = () => (countCall(world, "judge"), '{"verdict": "reject", "reason": "hm"}');
  const judge = (): Guardrail =>
    llmJudge({
      criteria: "none",
      stages: { input: "warn", tool_call: "warn", tool_result: "warn", output: "warn" },
      model: scriptedModel(Array(9).fill(verdict)),
    });
  const ends: Guardrail = {
    name: "ends",
    onInput: () => (countCall(world, "input"), { decision: "warn", reason: "noted" }),
    onOutput: () => (countCall(world, "output"), { decision: "warn", reason: "noted" }),
  };
  const talk = (request: ModelRequest) => {
    countCall(world, "model");
    if (request.messages.some(({ role }) => role === "tool")) return "done";
    return { toolCalls: [{ name: "wire", input: { usd: 5 } }] };
  };
  return {
    agents: () => [
      new Agent({
        name: "clerk",
        model: scriptedModel(Array(9).fill(talk)),
        tools: [wire],
        guardrails: [ends, judge()],
        permissions: permissions({ onAsk: "wait" }),
      }),
    ],
    input: "go",
    options: { prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } },
    interact: approving({ decision: "approved", input: { usd: 4 } }),
  };
}

function branches(world: World): Workload {
  const worker = agent("worker", async (ctx) => {
    const results = await ctx.parallel({
      left: async (branch) => {
        branch.emitEvent({ type: "turn_start", data: { turn: 1 } });
        const one = await branch.step("left", async () => (countCall(world, "left"), 1));
        branch.emitEvent({ type: "turn_start", data: { turn: 2 } });
        return one;
      },
      right: (branch) => branch.step("right", async () => (countCall(world, "right"), 2)),
    });
    const raced = await ctx.race<number>({
      quick: async (branch) => {
        const three = await branch.step("quick", async () => (countCall(world, "quick"), 3));
        branch.emitEvent({ type: "turn_start", data: { turn: 3 } });
        return three;
      },
      slow: async (branch) => (await branch.sleepUntil(1e15), 4),
    });
    return [results.left, results.right, raced.winner];
  });
  return { agents: () => [worker] };
}

function continuing(world: World): Workload {
  const counter = agent("counter", async (ctx) => {
    const done = Number(ctx.input ?? 0);
    await ctx.step("work", async ({ idempotencyKey }) => (countCall(world, idempotencyKey), done));
    ctx.emitEvent({ type: "turn_start", data: { turn: done } });
    return done === 3 ? "counted" : ctx.continueAsNew(done + 1);
  });
  return { agents: () => [counter] };
}

function steered(world: World): Workload {
  const inputs = ["a", "b", "c"];
  const listener = agent("listener", async (ctx) => {
    const before = await ctx.steering();
    await ctx.waitForSignal("go");
    const first = await ctx.steering();
    await ctx.step("work", async () => (countCall(world, "work"), 1));
    const remaining = await ctx.steering({ mode: "all" });
    await ctx.step("more work", async () => (countCall(world, "more work"), 1));
    return [before, first, remaining, await ctx.steering()];
  });
  return {
    agents: () => [listener],
    interact: async (handle, events) => {
      if (inputs.length === 0 || !events.some(({ type }) => type === "task_suspend")) return;
      for (const input of inputs.splice(0)) await handle.steer(input);
      await handle.signal("go");
    },
  };
}

function compacting(world: World): Workload {
  const script = ({ messages }: { messages: readonly unknown[] }) => (
    countCall(world, `model ${messages.length}`),
    "in short"
  );
  const history = [userMessage("a"), assistantMessage("b"), userMessage("c")];
  const keeper = async (ctx: RunContext): Promise<JsonValue> => {
    const turn = await ctx.turn(async ({ input }) => ({
      input,
      instructions: "Be brief.",
      tools: [],
      history,
    }));
    const { transcript } = await ctx.compact({
      transcript: turn.history,
      contextTokens: 100,
      compact: async (messages, inside) => {
        const { message } = await inside.llm({ transcript: Transcript.of(messages.slice(0, 2)) });
        return [userMessage(messageText(message)), ...messages.slice(2)];
      },
    });
    const { message } = await ctx.llm({ transcript, instructions: turn.instructions });
    return [transcript.length, messageText(message)];
  };
  return {
    agents: () => [agent("keeper", keeper, { models: { main: scriptedModel(Array(9).fill(script)) } })],
    options: { prices: { find: () => ({ inputUsd: 1e-6, outputUsd: 2e-6 }) } },
  };
}

/** Input that arrives too late to be read, so that it starts a second run. */
function unreadInput(world: World): Workload {
  let isSteered = false;
  const reader = agent("reader", async (ctx) => {
    if (ctx.input === null) await ctx.waitForSignal("go");
    await ctx.step("work", async () => (countCall(world, `work ${JSON.stringify(ctx.input)}`), 1));
    return ctx.input;
  });
  return {
    agents: () => [reader],
    interact: async (handle, events) => {
      if (isSteered || !events.some(({ type }) => type === "task_suspend")) return;
      isSteered = true;
      await handle.steer("a");
      await handle.signal("go");
    },
    isComplete: (runs) => runs.length === 2,
  };
}

/** Small runs of all kinds. Each counts its calls to the outside in `World`. */
export const workloads = {
  toolLoop,
  spawnTree,
  askAndReply,
  sendAndRetry,
  waiting,
  preemption,
  approval,
  question,
  guarded,
  branches,
  continuing,
  steered,
  compacting,
  unreadInput,
};

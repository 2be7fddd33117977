import { expect, test } from "vitest";
import {
  planAndExecute,
  react,
  reflexion,
  rewoo,
  selfRefine,
  treeOfThoughts,
} from "../../../src/agents/architectures/index.ts";
import { tool } from "../../../src/entries/index.ts";
import {
  eventDraft,
  noUsage,
  type Architecture,
  type Dependencies,
  type EventDraft,
  type EmittableEvent,
  type Tool,
} from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { transcriptLines, runAgent } from "./run-agent.ts";

function architecture(run: Architecture["run"]): Architecture {
  return { name: "own", run, declaredWorkers: () => ({}) };
}

test("scopeForWorker() reads no steering and no follow-ups and has no output format, also in dependencies derived from it", async () => {
  const seen: Pick<Dependencies, "steering" | "followUps" | "outputFormat" | "role">[] = [];
  const output = { type: "object" } as const;
  await runAgent(
    {
      model: scriptedModel(["{}"]),
      architecture: architecture(async function* own(session, deps, prompt) {
        const worker = deps.scopeForWorker("helper").withMaxTurns(2).withExtraTools([]);
        for (const { steering, followUps, outputFormat, role } of [deps, worker])
          seen.push({ steering, followUps, outputFormat, role });
        yield* react().run(session, deps, prompt);
      }),
    },
    { prompt: "Go", output },
  );
  expect(seen).toEqual([
    {
      steering: "one",
      followUps: "one",
      outputFormat: { type: "json", schema: output, name: "answer" },
      role: "main",
    },
    { steering: null, followUps: null, outputFormat: null, role: "helper" },
  ]);
});

test("if several extra tools have the same name, only the outermost one is listed, called and reported to its listener", async () => {
  const asked: string[] = [];
  const reported: string[] = [];
  const named = (name: string, by: string): Tool =>
    tool({
      name,
      description: by,
      inputSchema: { type: "object" },
      execute: () => {
        asked.push(`${name} of ${by}`);
        return "";
      },
    });
  const model = scriptedModel([
    { toolCalls: ["look", "peek", "stay"].map((name) => ({ name, input: {} })) },
    "done",
  ]);
  await runAgent({
    model,
    tools: [named("look", "agent"), named("stay", "agent")],
    architecture: architecture(async function* own(session, deps, prompt) {
      const outer = deps.withExtraTools([named("look", "outer")], (_, { toolName }) => {
        reported.push(`outer heard of ${toolName}`);
      });
      const inner = outer.withExtraTools(
        [named("look", "inner"), named("peek", "inner"), named("peek", "again")],
        (_, { toolName }) => {
          reported.push(`inner heard of ${toolName}`);
        },
      );
      yield* react().run(session, inner, prompt);
    }),
  });
  expect(model.calls[0]?.tools?.map(({ name, description }) => `${name} of ${description}`)).toEqual([
    "stay of agent",
    "look of outer",
    "peek of inner",
  ]);
  expect(asked.toSorted()).toEqual(["look of outer", "peek of inner", "stay of agent"]);
  expect(reported).toEqual(["outer heard of look", "inner heard of peek"]);
});

test("freshSession() creates a new session for every call with the same role", async () => {
  const model = scriptedModel(["one", "two"]);
  const ids: string[] = [];
  await runAgent({
    model,
    architecture: architecture(async function* own(session, deps) {
      for (const prompt of ["First", "Second"]) {
        const inner = deps.freshSession("helper", "");
        ids.push(inner.id);
        yield* react().run(inner, deps, prompt);
      }
      session.output = "done";
    }),
  });
  expect(new Set(ids).size).toBe(2);
  expect(model.calls.map(({ messages }) => transcriptLines(messages))).toEqual([
    ["user: First"],
    ["user: Second"],
  ]);
});

test("S1: every round that a stop hook requests is in the conversation, also if the architecture keeps no conversation", async () => {
  const { result, conversation } = await runAgent({
    model: scriptedModel(["[]", "one", "[]", "two"]),
    architecture: planAndExecute(),
    stopHooks: [
      { name: "again", shouldContinue: ({ continued }) => (continued === 0 ? "And then?" : undefined) },
    ],
  });
  expect(result.output).toBe("two");
  expect(transcriptLines(conversation)).toEqual([
    "user: What is it?",
    "assistant: one",
    "user: And then?",
    "assistant: two",
  ]);
});

const continueOnce = {
  name: "again",
  shouldContinue: ({ continued }: { readonly continued: number }) =>
    continued === 0 ? "And then?" : undefined,
};

/** Architectures with the replies of their models up to the first answer. */
const rounds = {
  react: { architecture: react(), script: ["one"] },
  reflexion: { architecture: reflexion(), script: ["one", "1"] },
  "self-refine": { architecture: selfRefine(), script: ["one", "no issues"] },
  rewoo: { architecture: rewoo(), script: ["[]", "one"] },
  "plan-and-execute": { architecture: planAndExecute(), script: ["[]", "one"] },
  "tree of thoughts": { architecture: treeOfThoughts({ depth: 1 }), script: ['["a"]', "1", "one"] },
} as const;

test.each(Object.entries(rounds))(
  "S1: %s that is stopped in a round of a stop hook does not repeat its earlier answer in the conversation",
  async (_name, { architecture: base, script }) => {
    const budget = { maxTurns: script.length };
    const model = scriptedModel(script);
    const options = { model, architecture: base, stopHooks: [continueOnce], budget };
    const { result, conversation, events } = await runAgent(options);
    expect(result).toMatchObject({ status: "budget_exhausted", output: "one" });
    expect(events.findLast(({ type }) => type === "agent_end")?.data).toMatchObject({ output: "one" });
    expect(transcriptLines(conversation)).toEqual([
      "user: What is it?",
      "assistant: one",
      "user: And then?",
      "assistant: [interrupted: budget_exhausted]",
    ]);
  },
);

test("S1: an answer that repeats an earlier one verbatim is in the conversation twice", async () => {
  const { result, conversation } = await runAgent({
    model: scriptedModel(["one", "one"]),
    stopHooks: [
      { ...continueOnce, shouldContinue: ({ continued }) => (continued < 2 ? "And then?" : undefined) },
    ],
    budget: { maxTurns: 2 },
  });
  expect(result).toMatchObject({ status: "budget_exhausted", output: "one" });
  expect(transcriptLines(conversation)).toEqual([
    "user: What is it?",
    "assistant: one",
    "user: And then?",
    "assistant: one",
    "user: And then?",
    "assistant: [interrupted: budget_exhausted]",
  ]);
});

test("S1: an interruption in the second round keeps the answer of the first in the result, and once in the conversation", async () => {
  let round = 0;
  const { result, conversation } = await runAgent({
    model: scriptedModel([]),
    stopHooks: [continueOnce],
    architecture: architecture(async function* own(session) {
      if (++round === 1) session.output = "one";
      else [session.interrupted, session.interruptionReason] = [true, "max_patience"];
      yield* [];
    }),
  });
  expect(result).toMatchObject({ status: "max_turns", output: "one" });
  expect(transcriptLines(conversation)).toEqual([
    "user: What is it?",
    "assistant: one",
    "user: And then?",
    "assistant: [interrupted: max_turns]",
  ]);
});

test.each([
  eventDraft("run_end", {
    status: "completed",
    usage: noUsage,
    costUsd: 0,
    turns: 0,
    lost: { tokens: 0, costUsd: 0 },
  }),
  eventDraft("approval_decision", { approvalId: "x", decision: { decision: "approved", by: "alice" } }),
  eventDraft("agent_start", { input: "x", architecture: "own" }),
])(
  "E1: an architecture that yields $type, which only the runtime may emit, fails with a list of the events it may emit",
  async (draft) => {
    const { result, events } = await runAgent({
      model: scriptedModel(["never"]),
      architecture: architecture(async function* own(session) {
        yield draft as EventDraft as EmittableEvent;
        session.output = "done";
      }),
    });
    expect(result).toMatchObject({
      status: "failed",
      error: {
        code: "invalid_argument",
        message: expect.stringContaining("Events that code may emit: architecture_event, "),
      },
    });
    const own = events.filter(({ type }) => type === draft.type);
    expect(own).toHaveLength(draft.type === "approval_decision" ? 0 : 1);
    expect(events.at(-1)?.type).toBe("run_end");
  },
);

import { expect, test } from "vitest";
import {
  planAndExecute,
  react,
  reflexion,
  rewoo,
  selfRefine,
  treeOfThoughts,
} from "../../../src/agents/architectures/index.ts";
import { tool } from "../../../src/index.ts";
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

test("a worker's scope hears nobody and owes no format, also in what is made of it", async () => {
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

test("of tools that are brought under one name the outermost's is told of, called and heard", async () => {
  const asked: string[] = [];
  const heard: string[] = [];
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
        heard.push(`outer heard of ${toolName}`);
      });
      const inner = outer.withExtraTools(
        [named("look", "inner"), named("peek", "inner"), named("peek", "again")],
        (_, { toolName }) => {
          heard.push(`inner heard of ${toolName}`);
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
  expect(heard).toEqual(["outer heard of look", "inner heard of peek"]);
});

test("sessions in a role are apart, however many there are of it", async () => {
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

test("S1: every round that a stop hook asks for is in the conversation, whoever keeps it", async () => {
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

const again = {
  name: "again",
  shouldContinue: ({ continued }: { readonly continued: number }) =>
    continued === 0 ? "And then?" : undefined,
};

/** What each is asked, in order, until its first answer; and in the second round what is said then. */
const thinkers = {
  react: { architecture: react(), script: ["one"] },
  reflexion: { architecture: reflexion(), script: ["one", "1"] },
  "self-refine": { architecture: selfRefine(), script: ["one", "no issues"] },
  rewoo: { architecture: rewoo(), script: ["[]", "one"] },
  "plan-and-execute": { architecture: planAndExecute(), script: ["[]", "one"] },
  "tree of thoughts": { architecture: treeOfThoughts({ depth: 1 }), script: ['["a"]', "1", "one"] },
} as const;

test.each(Object.entries(thinkers))(
  "S1: %s that is stopped in a round a stop hook asked for says nothing there that it did not say",
  async (_name, { architecture: base, script }) => {
    const budget = { maxTurns: script.length };
    const model = scriptedModel(script);
    const options = { model, architecture: base, stopHooks: [again], budget };
    const { result, conversation, events } = await runAgent(options);
    expect(result).toMatchObject({ status: "budget_exhausted", output: "one" });
    expect(events.findLast(({ type }) => type === "agent_end")?.data).toMatchObject({ output: "one" });
    expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: one", "user: And then?"]);
  },
);

test("S1: what is said again in the same words was said again", async () => {
  const { result, conversation } = await runAgent({
    model: scriptedModel(["one", "one"]),
    stopHooks: [{ ...again, shouldContinue: ({ continued }) => (continued < 2 ? "And then?" : undefined) }],
    budget: { maxTurns: 2 },
  });
  expect(result).toMatchObject({ status: "budget_exhausted", output: "one" });
  expect(transcriptLines(conversation)).toEqual([
    "user: What is it?",
    "assistant: one",
    "user: And then?",
    "assistant: one",
    "user: And then?",
  ]);
});

test("S1: a bound met in a later round leaves the answer before it, in the result and once in the conversation", async () => {
  let round = 0;
  const { result, conversation } = await runAgent({
    model: scriptedModel([]),
    stopHooks: [again],
    architecture: architecture(async function* own(session) {
      if (++round === 1) session.output = "one";
      else [session.interrupted, session.interruptionReason] = [true, "max_patience"];
      yield* [];
    }),
  });
  expect(result).toMatchObject({ status: "max_turns", output: "one" });
  expect(transcriptLines(conversation)).toEqual(["user: What is it?", "assistant: one", "user: And then?"]);
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
  "E1: an architecture that yields $type, which is not its to tell, fails and says which are",
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
        message: expect.stringContaining("architecture_event, turn_start"),
      },
    });
    const own = events.filter(({ type }) => type === draft.type);
    expect(own).toHaveLength(draft.type === "approval_decision" ? 0 : 1);
    expect(events.at(-1)?.type).toBe("run_end");
  },
);

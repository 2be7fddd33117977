import { expect, test } from "vitest";
import { planAndExecute, react } from "../../../src/agents/architectures/index.ts";
import { tool } from "../../../src/index.ts";
import type { Architecture, Dependencies, Tool } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { said, think } from "./thinking-run.ts";

function architecture(run: Architecture["run"]): Architecture {
  return { name: "own", run, declaredWorkers: () => ({}) };
}

test("a worker's scope hears nobody and owes no format, also in what is made of it", async () => {
  const seen: Pick<Dependencies, "steering" | "followUps" | "outputFormat" | "role">[] = [];
  const output = { type: "object" } as const;
  await think(
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
      input: { type: "object" },
      execute: () => {
        asked.push(`${name} of ${by}`);
        return "";
      },
    });
  const model = scriptedModel([
    { toolCalls: ["look", "peek", "stay"].map((name) => ({ name, input: {} })) },
    "done",
  ]);
  await think({
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
  await think({
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
  expect(model.calls.map(({ messages }) => said(messages))).toEqual([["user: First"], ["user: Second"]]);
});

test("S1: every round that a stop hook asks for is in the conversation, whoever keeps it", async () => {
  const { result, conversation } = await think({
    model: scriptedModel(["[]", "one", "[]", "two"]),
    architecture: planAndExecute(),
    stopHooks: [
      { name: "again", shouldContinue: ({ continued }) => (continued === 0 ? "And then?" : undefined) },
    ],
  });
  expect(result.output).toBe("two");
  expect(said(conversation)).toEqual([
    "user: What is it?",
    "assistant: one",
    "user: And then?",
    "assistant: two",
  ]);
});

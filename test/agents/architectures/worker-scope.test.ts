import { expect, test } from "vitest";
import { planAndExecute, react } from "../../../src/agents/architectures/index.ts";
import type { Architecture, Dependencies } from "../../../src/kernel/index.ts";
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

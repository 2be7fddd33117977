import { describe, expect, test } from "vitest";
import { Agent, Conditional, Sequential, type Guardrail } from "../../../../src/entries/index.ts";
import { eventDraft, type Architecture } from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { ran, speaker } from "./flow-run.ts";

describe("the answer of a Sequential flow", () => {
  test("structured output of a Sequential flow is requested from the last step only, also in a nested flow", async () => {
    const output = { type: "object", required: ["n"] } as const;
    const [one, two] = [speaker("one", "1", "1"), speaker("two", '{"n":2}', '{"n":3}')];
    const flow = new Sequential({ name: "s", steps: [one.agent, two.agent] });
    expect(await flow.invoke("x", { output })).toMatchObject({ status: "completed", output: { n: 2 } });
    expect(one.model.calls[0]?.responseFormat?.type).not.toBe("json");
    expect(two.model.calls[0]?.responseFormat?.type).toBe("json");
    const no = speaker("no").agent;
    const around = new Conditional({ name: "c", predicate: () => true, ifTrue: flow, ifFalse: no });
    expect(await around.invoke("x", { output })).toMatchObject({ status: "completed", output: { n: 3 } });
  });

  test.each(["onInput", "onOutput"] as const)(
    "a Sequential flow ends as guardrail_tripped if a guardrail at %s stops a step, also in a nested flow",
    async (stage) => {
      const never = {
        name: "never",
        [stage]: () => ({ decision: "block", reason: "not here" }),
      } as Guardrail;
      const guarded = () => new Agent({ name: "guarded", model: scriptedModel(["a"]), guardrails: [never] });
      const inner = new Sequential({ name: "inner", steps: [guarded()] });
      for (const steps of [
        [guarded(), speaker("next").agent],
        [speaker("before", "1").agent, guarded()],
        [inner, speaker("next").agent],
      ])
        expect(await new Sequential({ name: "s", steps }).invoke("x")).toMatchObject({
          status: "guardrail_tripped",
          interruptionReason: "not here",
        });
    },
  );

  test("an empty last answer of a Sequential flow keeps the answer before it", async () => {
    const steps = [speaker("one", "1").agent, speaker("two", "").agent];
    const { result } = await ran(new Sequential({ name: "s", steps }), "x");
    expect(result).toMatchObject({ status: "completed", output: "1" });
  });
});

test("structured output of a flow whose architecture does not support it is refused before any step without a model", async () => {
  const output = { type: "object", required: ["n"] } as const;
  let runs = 0;
  const architecture: Architecture = {
    name: "free",
    requiresModel: false,
    supportsStructuredOutput: false,
    async *run(session) {
      runs++;
      yield eventDraft("architecture_event", { architecture: "free", name: "free.ran", data: {} });
      session.output = "seven";
    },
    declaredWorkers: () => ({}),
  };
  const free = new Agent({ name: "free", architecture });
  await expect(free.invoke("x", { output })).rejects.toThrow(
    "agent free cannot give structured output: its architecture free returns free text",
  );
  expect(runs).toBe(0);
  const able = new Agent({ name: "able", architecture, model: scriptedModel(['{"n":7}']) });
  expect(await able.invoke("x", { output })).toMatchObject({ status: "completed", output: { n: 7 } });
});

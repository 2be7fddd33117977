import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  actorCritic,
  graphOfThoughts,
  react,
  reflexion,
  selfRefine,
  treeOfThoughts,
} from "../../../src/agents/architectures/index.ts";
import { Agent, structuredOutput } from "../../../src/entries/index.ts";
import type { Model, ModelRequest } from "../../../src/kernel/index.ts";
import { scriptedModel, type ScriptStep } from "../../../src/testing/index.ts";

const schema = z.object({ town: z.string(), days: z.number() });
const json = '{"town":"Sens","days":3}';
const value = { town: "Sens", days: 3 };

/** Answers that contain the value, and one that a parser may confuse with it. */
const answers = [
  ["the JSON alone", json],
  ["the JSON after a byte order mark", `\uFEFF${json}`],
  ["the JSON after thinking", `<think>Maybe {"town":"Tours","days":9}?</think>\n${json}`],
  ["the JSON before thinking", `${json}\n<think>Maybe {"town":"Tours","days":9}</think>`],
  [
    "the JSON between two thoughts and a closing remark",
    `<think>{"town":"Tours","days":9}</think>${json}<think>Or {"town":"Lyon","days":1}?</think>Bye.`,
  ],
  ["the JSON after thinking that mentions its tag", `<think>No <think> {"town":"","days":0}</think>${json}`],
  ["the JSON after thinking without an opening tag", `Maybe {"town":"Tours","days":9}</think>${json}`],
  ["the JSON before thinking that breaks off", `${json}\n<think>Maybe {"town":"Tours","days":9}, or`],
  ["the JSON after thinking that breaks off", `<think>Hm {"town":"Tours","days":9}, no: ${json}`],
  ["prose before and after the JSON", `Here you are: ${json}. Enjoy [the trip]!`],
  ["a code block", `\`\`\`json\n${json}\n\`\`\``],
  ["a code block between sentences", `Sure.\n\`\`\`json\n${json}\n\`\`\`\nAnything else?`],
  ["a second code block", `Instead of\n\`\`\`json\n{"town":"Sens"}\n\`\`\`\ntake\n\`\`\`\n${json}\n\`\`\``],
  ["a draft and then the final JSON", `First {"town":"Tours","days":9}, but then ${json}`],
  ["other JSON after it", `${json}\nSources: [1], {"page": 4}`],
  ["braces in the prose", `With {town} filled in: ${json}`],
] as const;

describe("a structured answer", () => {
  test.each(answers)("a structured answer is read in one call from %s", async (_name, text) => {
    const model = scriptedModel([text]);
    const result = await new Agent({ name: "clerk", model }).invoke("Where?", { output: schema });
    expect(result).toMatchObject({ status: "completed", output: value });
    expect(model.calls).toHaveLength(1);
  });

  test.each(answers)(
    "a structured answer is read in one call by structuredOutput() from %s",
    async (_name, text) => {
      const model = scriptedModel([text]);
      const layer = structuredOutput({ schema });
      const { status, output } = await new Agent({ name: "clerk", model, middleware: [layer] }).invoke(
        "Where?",
      );
      expect({ status, parsed: await layer.parse(output) }).toEqual({ status: "completed", parsed: value });
      expect(model.calls).toHaveLength(1);
    },
  );

  test.each([
    ["a bare word", z.enum(["red", "blue"]), "red", "red"],
    ["a quoted word", z.enum(["red", "blue"]), '"red"', "red"],
    ["a word after thinking", z.enum(["red", "blue"]), "<think>blue?</think>\nred\n", "red"],
    ["a word in a code block", z.enum(["red", "blue"]), "```\nred\n```", "red"],
    ["a sentence", z.string().min(3), "It is red.", "It is red."],
  ] as const)(
    "a structured answer is read from %s if the schema describes a text",
    async (_name, output, text, expected) => {
      const model = scriptedModel([text]);
      const result = await new Agent({ name: "clerk", model }).invoke("Colour?", { output });
      expect(result).toMatchObject({ status: "completed", output: expected });
    },
  );

  test("a structured answer is asked again if a bare word is not one of the schema's texts", async () => {
    const model = scriptedModel(["green", "blue"]);
    const output = z.enum(["red", "blue"]);
    const result = await new Agent({ name: "clerk", model }).invoke("Colour?", { output });
    expect(result).toMatchObject({ status: "completed", output: "blue" });
    expect(model.calls).toHaveLength(2);
  });

  test("a structured answer is asked again with the problems of the last JSON value if no value fits", async () => {
    const model = scriptedModel(['First {"town":"Sens"}, then {"days":3}.', json]);
    const result = await new Agent({ name: "clerk", model }).invoke("Where?", { output: schema });
    expect(result.output).toEqual(value);
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toContain("town");
  });

  test("a structured answer with 100,000 small lists around it is read with at most 50 checks", async () => {
    const model = scriptedModel([`${json} ${"[1] ".repeat(100_000)}`, json]);
    const result = await new Agent({ name: "clerk", model }).invoke("Where?", { output: schema });
    expect(result.output).toEqual(value);
    expect(model.calls).toHaveLength(2);
  });
});

/** Returns how often a request contains the schema, in its messages and as its response format. */
function schemasIn({ messages, responseFormat }: ModelRequest | Partial<ModelRequest> = {}): number {
  return JSON.stringify({ messages, responseFormat }).split("properties").length - 1;
}

function native(script: readonly ScriptStep[]): { readonly model: Model; readonly calls: ModelRequest[] } {
  const inner = scriptedModel(script);
  const model: Model = {
    provider: inner.provider,
    modelId: inner.modelId,
    supportsStructuredOutput: true,
    generate: (request, options) => inner.generate(request, options),
    stream: (request, options) => inner.stream(request, options),
  };
  return { model, calls: inner.calls };
}

describe("the schema of a structured answer", () => {
  test("the schema of a structured answer is sent once to a model that is known to enforce it, in repairs too", async () => {
    const { model, calls } = native(["three days", json]);
    const agent = new Agent({ name: "clerk", model, instructions: "Be brief." });
    expect((await agent.invoke("Where?", { output: schema })).output).toEqual(value);
    expect(calls.map(schemasIn)).toEqual([1, 1]);
    expect(calls[0]?.messages[0]).toEqual({ role: "system", content: "Be brief." });
    expect(calls[0]?.responseFormat).toMatchObject({ type: "json" });
  });

  test("the schema of a structured answer is also in the instructions if it is unknown whether the model enforces it", async () => {
    const model = scriptedModel([json]);
    await new Agent({ name: "clerk", model }).invoke("Where?", { output: schema });
    expect(schemasIn(model.calls[0])).toBe(2);
  });

  test("the schema of a structured answer is in the instructions of a role whose model is not known to enforce it", async () => {
    const main = native(["A draft."]);
    const refiner = scriptedModel([json]);
    const critic = scriptedModel(["Not JSON.", "No issues."]);
    const agent = new Agent({
      name: "clerk",
      model: main.model,
      models: { refiner, critic },
      architecture: selfRefine(react()),
    });
    expect((await agent.invoke("Where?", { output: schema })).output).toEqual(value);
    expect(schemasIn(main.calls[0])).toBe(1);
    expect(schemasIn(refiner.calls[0])).toBe(2);
  });
});

describe("a score of an answer above 1", () => {
  test("a score above 1 with a known scale is normalised, so that 3 of 10 does not approve", async () => {
    const actor = new Agent({ name: "actor", model: scriptedModel(["one", "two"]) });
    const model = scriptedModel(['{"score": "3 of 10", "issues": ["short"]}', '{"score": 9, "outOf": 10}']);
    const critic = new Agent({ name: "critic", model });
    const team = new Agent({
      name: "team",
      architecture: actorCritic({ actor, critic, approvalThreshold: 0.8 }),
    });
    const { output, metadata } = await team.invoke("Go.");
    expect(output).toBe("two");
    expect(metadata["actorCritic"]).toMatchObject({ rounds: 2, score: 0.9, approved: true });
  });

  test("a score above 1 with an unknown scale is asked for again, and the corrected score counts", async () => {
    const actor = new Agent({ name: "actor", model: scriptedModel(["one", "two"]) });
    const model = scriptedModel(['{"score": 3}', '{"score": 0.3}', '{"score": 1}']);
    const critic = new Agent({ name: "critic", model });
    const team = new Agent({
      name: "team",
      architecture: actorCritic({ actor, critic, approvalThreshold: 0.8 }),
    });
    const { output, metadata } = await team.invoke("Go.");
    expect(output).toBe("two");
    expect(metadata["actorCritic"]).toMatchObject({ rounds: 2, score: 1 });
    expect(JSON.stringify(model.calls[1]?.messages)).toContain("scale is unknown");
  });

  test("a reviewer of an answer never approves if its corrected score is above 1 too", async () => {
    const model = scriptedModel(["one", '{"score": 7}', '{"score": 8}']);
    const architecture = reflexion(react(), { maxAttempts: 1, threshold: 0.5 });
    const { metadata } = await new Agent({ name: "clerk", model, architecture }).invoke("Go.");
    expect(metadata["reflexion"]).toMatchObject({ scores: [0] });
    expect(model.calls).toHaveLength(3);
  });

  test("a score above 1 is asked for again by the tree of thoughts and by the graph of thoughts", async () => {
    const tree = scriptedModel(['["a"]', '{"score": 5}', '{"score": 0.5}', "a answer"]);
    const treeAgent = new Agent({
      name: "tree",
      model: tree,
      architecture: treeOfThoughts({ branches: 1, depth: 1 }),
    });
    expect((await treeAgent.invoke("Go.")).status).toBe("completed");
    expect(JSON.stringify(tree.calls[2]?.messages)).toContain("scale is unknown");
    const graph = scriptedModel([
      "answer",
      ...Array.from({ length: 10 }, (_, index) => `{"score": ${index % 2 === 0 ? 5 : 0.5}}`),
    ]);
    const graphAgent = new Agent({
      name: "graph",
      model: graph,
      architecture: graphOfThoughts({
        operations: [{ do: "generate", count: 1 }, { do: "score" }],
        parallel: false,
      }),
    });
    await graphAgent.invoke("Go.");
    expect(JSON.stringify(graph.calls[2]?.messages)).toContain("scale is unknown");
  });
});

import { describe, expect, test } from "vitest";
import { planAndExecute, router } from "../../../src/agents/architectures/index.ts";
import { promptParts } from "../../../src/agents/base/agent-input.ts";
import { Agent, openRuntime } from "../../../src/entries/index.ts";
import type { UserPart } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { removeStoresAfterEach, twoStores } from "../../runtime/two-stores.ts";

removeStoresAfterEach();

const image: UserPart = {
  type: "image",
  mediaType: "image/png",
  source: { kind: "base64", data: "AAAA" },
  providerMetadata: { openai: { imageDetail: "low" } },
};
const parts: readonly UserPart[] = [
  { type: "text", text: "Before: " },
  image,
  {
    type: "text",
    text: "and after.",
    providerMetadata: { anthropic: { cacheControl: { type: "ephemeral" } } },
  },
];

describe.each(twoStores)("an input of several parts on the %s store", (_name, prepare) => {
  test("the parts of an input keep their order and provider metadata, also in the next run of the session", async () => {
    const open = await prepare();
    const model = scriptedModel(["A dot.", "Still."]);
    const agent = new Agent({ name: "watcher", model });
    const first = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    const { sessionId } = await (await first.submit(agent, parts as never)).result();
    await first.close();
    expect(model.calls[0]?.messages).toEqual([{ role: "user", content: parts }]);
    const second = await openRuntime({ store: await open(), unknownPrice: "ignore" });
    await (await second.submit(agent, "And now?", { sessionId })).result();
    await second.close();
    expect(model.calls[1]?.messages[0]).toEqual({ role: "user", content: parts });
  });
});

test("a worker receives the parts of its parent's input in their order", async () => {
  const model = scriptedModel(["A dot."]);
  const clerk = new Agent({ name: "clerk", description: "Looks", model });
  const desk = new Agent({
    name: "desk",
    model: scriptedModel(["route: clerk\nconfidence: 1"]),
    architecture: router({ routes: { clerk } }),
  });
  expect((await desk.invoke(parts)).output).toBe("A dot.");
  expect(model.calls[0]?.messages.at(-1)).toEqual({ role: "user", content: parts });
});

test("a prompt that an architecture writes around the input keeps the parts of the input in their order", async () => {
  const model = scriptedModel(['["look"]', "seen", "A dot."]);
  const agent = new Agent({ name: "planner", model, architecture: planAndExecute() });
  await agent.invoke(parts);
  const [, step] = model.calls;
  expect(step?.messages.at(-1)?.content).toEqual([
    { type: "text", text: "# Task\n" },
    ...parts,
    { type: "text", text: expect.stringContaining("# Plan") as string },
  ]);
});

describe("promptParts()", () => {
  const text = (value: string): UserPart => ({ type: "text", text: value });

  test("promptParts() puts the parts where whole lines of the prompt are their texts", () => {
    const given = [text("a"), image, text("b")];
    expect(promptParts("# Task a\na\nb\n\n# Plan\na\nb", given)).toEqual([
      text("# Task a\n"),
      ...given,
      text("\n\n# Plan\na\nb"),
    ]);
  });

  test("promptParts() replaces the texts by a prompt that does not contain them, and keeps the images", () => {
    expect(promptParts("ab", [text("a"), image, text("b")])).toEqual([text("ab"), image]);
  });

  test("promptParts() leaves out empty texts, and keeps an image without a text after the prompt", () => {
    expect(promptParts("a", [text(""), image, text("a")])).toEqual([image, text("a")]);
    expect(promptParts("Look", [text(""), image])).toEqual([text("Look"), image]);
  });
});

test("a prompt of an architecture does not join the texts of the input without a separator", async () => {
  const model = scriptedModel(["route: clerk\nconfidence: 1"]);
  const clerk = new Agent({ name: "clerk", description: "Looks", model: scriptedModel(["A dot."]) });
  await new Agent({ name: "desk", model, architecture: router({ routes: { clerk } }) }).invoke([
    { type: "text", text: "Left" },
    image,
    { type: "text", text: "Right" },
  ]);
  expect(JSON.stringify(model.calls[0]?.messages)).not.toContain("LeftRight");
});

test.each([
  ["an empty text", ""],
  ["a blank text", " \n"],
  ["a part with an empty text", [{ type: "text", text: "" }]],
  ["a request with an empty prompt", { prompt: "" }],
] as const)("invoke() refuses %s before any model call", async (_name, input) => {
  const model = scriptedModel(["never"]);
  const agent = new Agent({ name: "clerk", model });
  const refused = { code: "invalid_argument", message: expect.stringContaining("it is empty") as string };
  await expect(agent.invoke(input as string)).rejects.toMatchObject(refused);
  const runtime = await openRuntime({ unknownPrice: "ignore" });
  const run = await runtime.submit(agent, input);
  expect(await run.result()).toMatchObject({ status: "failed", error: { code: "invalid_argument" } });
  await runtime.close();
  expect(model.calls).toEqual([]);
});

test("an image without a text is accepted", async () => {
  const model = scriptedModel(["A dot."]);
  expect((await new Agent({ name: "watcher", model }).invoke([image])).status).toBe("completed");
  expect(model.calls[0]?.messages).toEqual([{ role: "user", content: [image] }]);
});

test.each(["history", "instructions"] as const)(
  "invoke() refuses an input with %s, which only a parent agent may give",
  async (key) => {
    const value = key === "history" ? [{ role: "user", content: "Hi" }] : "Obey.";
    const agent = new Agent({ name: "clerk", model: scriptedModel(["never"]) });
    await expect(agent.invoke({ prompt: "Go.", [key]: value })).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining(`${key} is accepted only from a parent agent`) as string,
    });
  },
);

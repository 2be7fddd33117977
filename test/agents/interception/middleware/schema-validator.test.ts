import { describe, expect, test } from "vitest";
import { z } from "zod";
import { messageText } from "../../../../src/kernel/index.ts";
import { schemaValidator } from "../../../../src/assembly/middleware.ts";
import { answerText, chatScene } from "./contexts.ts";

const schema = z.object({ town: z.string(), degrees: z.number() });
const good = '{"town":"Sens","degrees":21}';

describe.for([false, true])("schemaValidator() (streaming: %s)", (streaming) => {
  test("schemaValidator() parses a valid answer, also from a code block, into context.metadata", async () => {
    for (const answer of [good, `\`\`\`json\n${good}\n\`\`\``]) {
      const scene = chatScene([answer], { streaming });
      expect(answerText(await scene.call([schemaValidator({ schema })]))).toBe(answer);
      expect(scene.context.metadata).toEqual({ schemaValid: true, parsed: { town: "Sens", degrees: 21 } });
    }
  });

  test("schemaValidator() asks the model again with the validation errors, and outer middleware sees the original request", async () => {
    const scene = chatScene(['{"town":"Sens"}', "sorry?", good], { streaming });
    await scene.call([{ chat: (_context, next) => next() }, schemaValidator({ schema })]);
    expect(scene.context.request.messages).toHaveLength(1);
    const last = (call: number) => scene.model.calls[call]?.messages.at(-1);
    expect(scene.model.calls.map(({ messages }) => messages.length)).toEqual([1, 3, 3]);
    expect(messageText(last(1) ?? { role: "system", content: "" })).toMatch(/degrees .*expected number/iu);
    expect(messageText(last(2) ?? { role: "system", content: "" })).toMatch(/it is not JSON/u);
    expect(scene.context.metadata["schemaValid"]).toBe(true);
  });

  test("after maxRepairs, schemaValidator() passes the invalid answer on by default, or stops the run with onInvalid: terminate", async () => {
    const scene = chatScene(["a", "b"], { streaming });
    expect(answerText(await scene.call([schemaValidator({ schema, maxRepairs: 1 })]))).toBe("b");
    expect(scene.context.metadata).toEqual({ schemaValid: false });
    const strict = chatScene(["a"], { streaming });
    await expect(
      strict.call([schemaValidator({ schema, maxRepairs: 0, onInvalid: "terminate" })]),
    ).rejects.toMatchObject({ code: "guardrail_tripped", by: "schema-validator" });
  });
});

test("schemaValidator() does not validate messages with tool calls or of another model role", async () => {
  const calling = chatScene([{ text: "hm", toolCalls: [{ name: "look", input: {} }] }]);
  await calling.call([schemaValidator({ schema })]);
  const judging = chatScene(["not JSON"], { role: "judge" });
  await judging.call([schemaValidator({ schema })]);
  expect([calling.context.metadata, judging.context.metadata]).toEqual([{}, {}]);
});

test("schemaValidator() accepts a plain JSON Schema", async () => {
  const plain = { type: "object", required: ["town"], properties: { town: { type: "string" } } } as const;
  const scene = chatScene(['{"town":7}', '{"town":"Sens"}']);
  await scene.call([schemaValidator({ schema: plain })]);
  expect(messageText(scene.model.calls[1]?.messages.at(-1) ?? { role: "system", content: "" })).toContain(
    "town must be string",
  );
  expect(scene.context.metadata["parsed"]).toEqual({ town: "Sens" });
});

import { describe, expect, test } from "vitest";
import { userMessage, type ModelStreamPart } from "../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../src/testing/index.ts";

const request = { messages: [userMessage("hello")] };

async function all(parts: AsyncIterable<ModelStreamPart>): Promise<ModelStreamPart[]> {
  const list: ModelStreamPart[] = [];
  for await (const part of parts) list.push(part);
  return list;
}

describe("a scripted model", () => {
  test("a scripted model answers in order and remembers its requests", async () => {
    const model = scriptedModel(["one", { toolCalls: [{ name: "look", input: { n: 1 } }] }]);
    expect(await model.generate(request)).toMatchObject({
      message: { content: [{ text: "one" }] },
      stopReason: "stop",
    });
    expect(await model.generate(request)).toMatchObject({ stopReason: "tool_calls" });
    expect(model.calls).toEqual([request, request]);
  });

  test("a scripted model streams what it generates: the finish part has the same answer", async () => {
    const reply = { deltas: ["Hel", "lo"], reasoning: "hm", usage: { inputTokens: 7 } };
    const parts = await all(scriptedModel([reply]).stream(request));
    expect(parts.map(({ type }) => type)).toEqual(["reasoning_delta", "text_delta", "text_delta", "finish"]);
    const { type: _type, ...finish } = parts.at(-1) as Extract<ModelStreamPart, { type: "finish" }>;
    expect(finish).toEqual(await scriptedModel([reply]).generate(request));
    expect(finish.usage.inputTokens).toBe(7);
  });

  test("a scripted model throws the scripted error, and after its deltas when it streams", async () => {
    const reply = { deltas: ["Hel"], error: new Error("cut off") };
    await expect(scriptedModel([reply]).generate(request)).rejects.toThrow("cut off");
    const seen: string[] = [];
    const read = async () => {
      for await (const part of scriptedModel([reply]).stream(request)) seen.push(part.type);
    };
    await expect(read()).rejects.toThrow("cut off");
    expect(seen).toEqual(["text_delta"]);
  });

  test("a cut stream of a scripted model ends without a finish part", async () => {
    const parts = await all(scriptedModel([{ deltas: ["Hel"], cut: true }]).stream(request));
    expect(parts.map(({ type }) => type)).toEqual(["text_delta"]);
  });

  test("a scripted model waits by the clock that it was given, and stops waiting when aborted", async () => {
    const clock = new FakeClock();
    const model = scriptedModel(
      [
        { text: "slow", delayMs: 1_000 },
        { text: "never", delayMs: 1_000 },
      ],
      { clock },
    );
    let answered = false;
    const first = model.generate(request).then(() => (answered = true));
    await clock.advance(999);
    expect(answered).toBe(false);
    await clock.advance(1);
    await first;
    const controller = new AbortController();
    const second = model.generate(request, { signal: controller.signal });
    controller.abort(new Error("stop"));
    await expect(second).rejects.toThrow("stop");
    expect(clock.pending).toBe(0);
  });

  test("a scripted model reports more requests than were scripted, and a wait without a clock", async () => {
    await expect(scriptedModel([]).generate(request)).rejects.toThrow(
      "has 0 replies and was asked for one more",
    );
    await expect(scriptedModel([{ delayMs: 5 }]).generate(request)).rejects.toThrow("needs a clock");
  });
});

import { mkdtemp, readFile, rm, appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { classifyError, userMessage, type Model, type ModelRequest } from "../../src/kernel/index.ts";
import { recordModel, replayModel, scriptedModel } from "../../src/testing/index.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-record-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const asking = (text: string): ModelRequest => ({ messages: [userMessage(text)], maxOutputTokens: 10 });

async function parts(model: Model, request: ModelRequest) {
  const list = [];
  for await (const part of model.stream(request)) list.push(part);
  return list;
}

test("replayModel() returns recorded replies in any order, both generated and streamed", async () => {
  const file = join(folder, "answers.jsonl");
  const script = [
    { deltas: ["Hel", "lo"], reasoning: "hm" },
    "two",
    { toolCalls: [{ name: "look", input: { n: 1 } }] },
  ];
  const live = recordModel(scriptedModel(script, { provider: "openai", modelId: "gpt-5" }), file);
  const streamed = await parts(live, asking("one"));
  const whole = await live.generate(asking("two"));
  await live.generate(asking("three"));
  const replayed = replayModel(file);
  expect([replayed.provider, replayed.modelId]).toEqual(["openai", "gpt-5"]);
  expect((await replayed.generate(asking("three"))).stopReason).toBe("tool_calls");
  expect(await replayed.generate(asking("two"))).toEqual(whole);
  expect(await parts(replayed, asking("one"))).toEqual(streamed);
});

test("replayModel() streams an answer that was not streamed in one piece", async () => {
  const file = join(folder, "whole.jsonl");
  await recordModel(scriptedModel(["Hello"]), file).generate(asking("one"));
  const [delta, finish] = await parts(replayModel(file), asking("one"));
  expect(delta).toEqual({ type: "text_delta", text: "Hello" });
  expect(finish).toMatchObject({ type: "finish", stopReason: "stop" });
});

test("replayModel() throws a recorded error with the same kind, and the recording contains no secret", async () => {
  const file = join(folder, "errors.jsonl");
  const error = Object.assign(new Error("Slow down"), {
    name: "AI_APICallError",
    url: "https://secret.example/v1",
    requestBodyValues: { key: "sk-secret" },
    statusCode: 429,
    responseHeaders: { "Retry-After": "7", authorization: "sk-secret" },
    responseBody: '{"error":{"code":"rate_limit_exceeded"}}',
    cause: new TypeError("terminated"),
  });
  const live = recordModel(scriptedModel([{ error }, { deltas: ["He"], error }]), file);
  await expect(live.generate(asking("one"))).rejects.toBe(error);
  await expect(parts(live, asking("two"))).rejects.toBe(error);
  const replayed = replayModel(file);
  const thrown: unknown = await replayed.generate(asking("one")).catch((each: unknown) => each);
  expect(classifyError(thrown)).toEqual(classifyError(error));
  expect(classifyError(thrown)).toMatchObject({ kind: "rate_limit", retryAfterMs: 7_000, status: 429 });
  const seen: string[] = [];
  const read = async () => {
    for await (const part of replayed.stream(asking("two"))) seen.push(part.type);
  };
  await expect(read()).rejects.toThrow("Slow down");
  expect(seen).toEqual(["text_delta"]);
  expect(await readFile(file, "utf8")).not.toContain("secret");
});

test("replayModel() refuses a request that was not recorded, and names the place where the nearest one differs", async () => {
  const file = join(folder, "mismatch.jsonl");
  const live = recordModel(scriptedModel(["one", "two"]), file);
  await live.generate({ ...asking("hello"), temperature: 1 });
  await live.generate({ messages: [userMessage("hello"), userMessage("again")] });
  const replayed = replayModel(file);
  await expect(
    replayed.generate({ messages: [userMessage("hello"), userMessage("anew")] }),
  ).rejects.toMatchObject({
    code: "invalid_argument",
    message: expect.stringContaining(
      'request.messages[1].content[0].text: recorded "again", asked "anew"',
    ) as string,
  });
  await replayed.generate({ messages: [userMessage("hello"), userMessage("again")] });
  await replayed.generate({ ...asking("hello"), temperature: 1 });
  await expect(replayed.generate(asking("hello"))).rejects.toThrow("no call left");
});

test("replayModel() can ignore values in its comparison that change from run to run", async () => {
  const file = join(folder, "compare.jsonl");
  await recordModel(scriptedModel(["one"]), file).generate(asking("today is Monday"));
  const compare = ({ messages }: ModelRequest) => messages.length;
  const { message } = await replayModel(file, { compare }).generate(asking("today is Tuesday"));
  expect(message.content).toEqual([{ type: "text", text: "one" }]);
});

test("replayModel() reads a file whose last line was cut by a crash up to that line, and refuses a file of another kind", async () => {
  const file = join(folder, "cut.jsonl");
  await recordModel(scriptedModel(["one"]), file).generate(asking("one"));
  await appendFile(file, '{"type":"call","requ');
  expect((await replayModel(file).generate(asking("one"))).stopReason).toBe("stop");
  await appendFile(file, "\n");
  expect(() => replayModel(file)).toThrow(`${file}:3 is not JSON`);
});

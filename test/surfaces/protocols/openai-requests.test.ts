import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import OpenAI, { APIUserAbortError } from "openai";
import type { ChatCompletionCreateParams } from "openai/resources";
import { formatSessionId, messageText } from "../../../src/kernel/index.ts";
import type { ServedAgent } from "../../../src/surfaces/server/index.ts";
import { startServer, type TestServer } from "../server/test-server.ts";
import { echo, echoModel, OpenAiWorld, thrownBy, user, work } from "./test-openai.ts";

let world: OpenAiWorld;
beforeAll(async () => {
  world = await OpenAiWorld.open();
});
afterAll(() => world.server.close());
beforeEach(() => world.begin());

describe("the parameters of an OpenAI request", () => {
  it("parameters of an OpenAI request that control the model are applied", async () => {
    const before = echoModel.calls.length;
    await world.client.chat.completions.create({
      model: "echo",
      messages: [user("hi")],
      temperature: 0.5,
      top_p: 0.9,
      seed: 7,
      presence_penalty: 1,
      frequency_penalty: -1,
      max_tokens: 50,
      metadata: { ticket: "17" },
      user: "someone",
      store: true,
      n: 1,
      tools: [],
      stop: null,
    });
    expect(echoModel.calls[before]).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      seed: 7,
      presencePenalty: 1,
      frequencyPenalty: -1,
      maxOutputTokens: 50,
    });
    expect((await world.runsOf("echo"))[0]).toMatchObject({ metadata: { ticket: "17" }, userId: "ann" });
  });

  it.each<[string, unknown]>([
    ["tool_choice", "always"],
    ["functions", [{ name: "f" }]],
    ["n", 2],
    ["logprobs", true],
    ["logit_bias", { "1": 1 }],
    ["stop", ["x"]],
    ["modalities", ["text", "audio"]],
    ["reasoning_effort", "high"],
    ["response_format", { type: "xml" }],
    ["temperature", 3],
    ["temprature", 1],
    ["max_tokens", 0],
  ])(
    "parameters of an OpenAI request that cannot be honoured are refused with 400, and the error names %s",
    async (param, value) => {
      const runs = (await world.runsOf("echo")).length;
      const error = await thrownBy(
        world.client.chat.completions.create({ model: "echo", messages: [user("hi")], [param]: value }),
      );
      expect(error).toMatchObject({ status: 400, param, type: "invalid_request_error" });
      expect([world.posts, (await world.runsOf("echo")).length]).toEqual([1, runs]);
    },
  );

  it("response_format of an OpenAI request with a JSON Schema returns only the checked JSON, streamed or not", async () => {
    const body = {
      model: "structured",
      messages: [user("Sky?")],
      response_format: {
        type: "json_schema" as const,
        json_schema: {
          name: "sky",
          schema: { type: "object", properties: { sky: { type: "string" } }, required: ["sky"] },
        },
      },
    } satisfies ChatCompletionCreateParams;
    const { choices } = await world.client.chat.completions.parse(body);
    expect(choices[0]?.message.parsed).toEqual({ sky: "blue" });
    expect((await world.streamed(body)).text).toBe('{"sky":"blue"}');
  });
});

it("an agent that is made for each OpenAI request receives the messages as history, in a session of its own", async () => {
  const made: ServedAgent = {
    name: "made",
    start: ({ runId }) => ({ agent: echo, sessionId: formatSessionId(runId) }),
  };
  const own = await startServer([], { agents: [made] });
  own.runtime.register(echo);
  const client = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: own.admin });
  const before = echoModel.calls.length;
  const messages = [user("One"), { role: "assistant" as const, content: "Yes." }, user("Two")];
  const { choices } = await client.chat.completions.create({ model: "made", messages });
  expect(choices[0]?.message.content).toBe("You said Two.");
  expect(echoModel.calls[before]?.messages.map(messageText)).toEqual(["Repeat.", "One", "Yes.", "Two"]);
  await own.close();
});

describe("OpenAI requests that are repeated", () => {
  it("the OpenAI client does not repeat a request whose run has failed, because the status is 501", async () => {
    const runs = (await world.runsOf("failing")).length;
    const body = { model: "failing", messages: [user("Go")] };
    const error = await thrownBy(world.client.chat.completions.create(body));
    expect(error.message).toContain("the ledger is away");
    expect(error.status).toBe(501);
    expect(error.headers?.get("x-should-retry")).toBe("false");
    expect(error.headers?.get("x-reeve-run")).toMatch(/^run_/u);
    expect([world.posts, (await world.runsOf("failing")).length]).toEqual([1, runs + 1]);
    expect((await thrownBy(world.streamed(body))).message).toContain("the ledger is away");
    expect([world.posts, (await world.runsOf("failing")).length]).toEqual([2, runs + 2]);
  });

  it("the OpenAI client repeats a request that was refused before a run existed, until it is accepted", async () => {
    const busy = await startServer([echo], { limits: { maxStreamsPerToken: 1, requestBurst: 100 } });
    const { signal, release } = holdStream(busy);
    await signal;
    const retrying = new OpenAI({ baseURL: `${busy.url}/v1`, apiKey: busy.admin, maxRetries: 5 });
    const answer = retrying.chat.completions.create({ model: "echo", messages: [user("hi")] });
    while (busy.requests.filter((each) => each.startsWith("POST")).length < 2)
      await new Promise<void>((resolve) => void setImmediate(resolve));
    release();
    expect((await answer).choices[0]?.message.content).toBe("You said hi.");
    expect((await busy.runtime.list()).runs).toHaveLength(1);
    await busy.close();
  });

  it("an OpenAI request with an Idempotency-Key that is sent again joins the same run", async () => {
    const options = { headers: { "Idempotency-Key": "once" } };
    const body = { model: "slow", messages: [user("Go")] };
    const before = (await world.runsOf("slow")).length;
    const abort = new AbortController();
    const first = world.client.chat.completions.create(body, { ...options, signal: abort.signal });
    await work.started.promise;
    abort.abort();
    await expect(first).rejects.toBeInstanceOf(APIUserAbortError);
    const [second, third] = [
      world.client.chat.completions.create(body, options),
      world.streamed({ ...body }, options),
    ];
    work.gate.resolve();
    expect((await second).choices[0]?.message.content).toBe("Finished.");
    expect((await third).text).toBe("Finished.");
    expect((await world.runsOf("slow")).length).toBe(before + 1);
    const error = await thrownBy(
      world.client.chat.completions.create({ ...body, messages: [user("Other")] }, options),
    );
    expect(error).toMatchObject({ status: 400, code: "already_exists" });
  });

  it.each([false, true])(
    "C3: an OpenAI client that aborts its request does not stop the run (stream: %s)",
    async (stream) => {
      const abort = new AbortController();
      const body = { model: "slow", messages: [user("Go")] };
      const { signal } = abort;
      const answer: Promise<unknown> = stream
        ? world.streamed(body, { signal })
        : world.client.chat.completions.create(body, { signal });
      const left = Promise.allSettled([answer]);
      await work.started.promise;
      abort.abort();
      await left;
      work.gate.resolve();
      const [latest] = await world.runsOf("slow");
      expect(await (await world.view.find(latest?.runId ?? ""))?.result()).toMatchObject({
        status: "completed",
        output: "Finished.",
      });
    },
  );
});

/** Opens a stream of the server's admin, until it is released. */
function holdStream({ url, admin }: TestServer): {
  readonly signal: Promise<unknown>;
  readonly release: () => void;
} {
  const abort = new AbortController();
  const signal = fetch(`${url}/api/stream`, {
    headers: { authorization: `Bearer ${admin}` },
    signal: abort.signal,
  });
  return { signal, release: () => abort.abort() };
}

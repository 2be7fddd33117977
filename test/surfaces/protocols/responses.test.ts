import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type OpenAI from "openai";
import type { FunctionTool, Response, ResponseStreamEvent } from "openai/resources/responses/responses";
import { echoModel, helperModel, OpenAiWorld, thrownBy, work } from "./test-openai.ts";

let world: OpenAiWorld;
let responses: OpenAI.Responses;
beforeAll(async () => {
  world = await OpenAiWorld.open();
  ({ responses } = world.client);
});
afterAll(() => world.server.close());
beforeEach(() => world.begin());

const weather: FunctionTool = {
  type: "function",
  name: "weather",
  description: "Returns the weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false,
};

function callsOf({ output }: Response) {
  return output.filter((item) => item.type === "function_call");
}

function outputs(response: Response, output: string) {
  return callsOf(response).map(({ call_id }) => ({ type: "function_call_output" as const, call_id, output }));
}

async function eventsOf(stream: AsyncIterable<ResponseStreamEvent>): Promise<readonly ResponseStreamEvent[]> {
  const all: ResponseStreamEvent[] = [];
  for await (const event of stream) all.push(event);
  return all;
}

describe("answers", () => {
  it("a response contains the answer of the agent, its usage and the parameters of the request", async () => {
    const response = await responses.create({
      model: "echo",
      input: "hi",
      instructions: "Be kind.",
      temperature: 0.5,
      metadata: { ticket: "17" },
    });
    expect(response).toMatchObject({
      object: "response",
      status: "completed",
      model: "echo",
      output_text: "You said hi.",
      instructions: "Be kind.",
      temperature: 0.5,
      metadata: { ticket: "17" },
      previous_response_id: null,
      usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
    });
    expect(response.id).toMatch(/^resp_/u);
    expect(await responses.retrieve(response.id)).toEqual(response);
    const [run] = await world.runsOf("echo");
    expect(run).toMatchObject({ userId: "ann", metadata: { ticket: "17" } });
    expect(echoModel.calls.at(-1)).toMatchObject({ temperature: 0.5 });
  });

  it("a streamed response builds the items that the response has in the end", async () => {
    const stream = responses.stream({ model: "echo", input: "hi" });
    const types: string[] = [];
    const numbers: number[] = [];
    for await (const event of stream) {
      // Deltas that arrive together may be one event.
      if (types.at(-1) !== event.type) types.push(event.type);
      numbers.push(event.sequence_number);
    }
    const final = await stream.finalResponse();
    expect(final.output_text).toBe("You said hi.");
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(numbers).toEqual(numbers.map((_number, index) => index));
    const { output_text: _text, parsed: _parsed, ...stored } = final as unknown as Record<string, unknown>;
    expect(await responses.retrieve(final.id)).toMatchObject({ id: stored["id"], usage: stored["usage"] });
  });

  it("reasoning of the model is an item of its own before the message", async () => {
    const response = await responses.create({ model: "thinker", input: "Why?" });
    expect(response.output).toMatchObject([
      { type: "reasoning", summary: [{ type: "summary_text", text: "I think." }] },
      { type: "message", content: [{ type: "output_text", text: "Because." }] },
    ]);
    const events = await eventsOf(await responses.create({ model: "thinker", input: "Why?", stream: true }));
    expect(events.map(({ type }) => type)).toContain("response.reasoning_summary_text.delta");
    expect(events.at(-1)).toMatchObject({ type: "response.completed" });
  });

  it("text.format with a JSON Schema returns only the checked JSON", async () => {
    const format = {
      type: "json_schema" as const,
      name: "sky",
      schema: { type: "object", properties: { sky: { type: "string" } }, required: ["sky"] },
    };
    const response = await responses.create({ model: "structured", input: "Sky?", text: { format } });
    expect(JSON.parse(response.output_text)).toEqual({ sky: "blue" });
    expect(await responses.retrieve(response.id)).toEqual(response);
  });

  it("an image in the input reaches the model", async () => {
    await responses.create({
      model: "echo",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is it?" },
            { type: "input_image", detail: "auto", image_url: "data:image/png;base64,aGk=" },
          ],
        },
      ],
    });
    expect(echoModel.calls.at(-1)?.messages.at(-1)?.content).toMatchObject([
      { type: "text", text: "What is it?" },
      { type: "image", mediaType: "image/png", source: { kind: "base64", data: "aGk=" } },
    ]);
  });

  it("the input is the history of a request without previous_response_id", async () => {
    await responses.create({
      model: "echo",
      input: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "One" },
        { role: "assistant", content: "Two" },
        { type: "message", role: "user", content: "Three" },
      ],
    });
    const { messages = [] } = echoModel.calls.at(-1) ?? {};
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(JSON.stringify(messages[0])).toContain("Be kind.");
  });

  it("a run that fails is a response with the status failed and its error", async () => {
    expect(await responses.create({ model: "failing", input: "hi" })).toMatchObject({
      status: "failed",
      error: { code: "unsupported", message: "the ledger is away" },
    });
  });

  it("an answer whose first attempt broke off has only the words of the second one", async () => {
    const stream = responses.stream({ model: "broken", input: "Where?" });
    const final = await stream.finalResponse();
    expect(final.output).toMatchObject([
      { type: "reasoning", summary: [{ text: "So." }] },
      { type: "message", content: [{ text: "Found again." }] },
    ]);
    expect((await responses.retrieve(final.id)).output_text).toBe("Found again.");
  });

  it("a run that waits for a person ends the response with a sentence, and the retrieved response has the rest later", async () => {
    const response = await responses.create({ model: "clerk", input: "Send" });
    expect(response).toMatchObject({ status: "completed" });
    expect(response.output_text).toMatch(/waits for a person: approval/u);
    const error = await thrownBy(
      responses.create({ model: "clerk", input: "And?", previous_response_id: response.id }),
    );
    expect(error).toMatchObject({ status: 400, param: "previous_response_id" });
    const [run] = await world.runsOf("clerk");
    const handle = await world.view.find(run?.runId ?? "");
    const [asked] = (await handle?.pendingApprovals()) ?? [];
    await handle?.approve(asked?.approvalId ?? "", { decision: "approved" });
    await handle?.result();
    expect((await responses.retrieve(response.id)).output_text).toBe("I ask first.Done.");
  });
});

describe("conversations", () => {
  it("previous_response_id continues the conversation, an older one forks it, and two requests may continue the same answer", async () => {
    const ask = (input: string, previous_response_id?: string) =>
      responses.create({ model: "echo", input, ...(previous_response_id && { previous_response_id }) });
    const seen = () =>
      echoModel.calls
        .at(-1)
        ?.messages.filter(({ role }) => role === "user")
        .map(({ content }) => (content as readonly { readonly text: string }[])[0]?.text);
    const one = await ask("One");
    const two = await ask("Two", one.id);
    expect([two.previous_response_id, seen()]).toEqual([one.id, ["One", "Two"]]);
    await ask("Three", two.id);
    expect(seen()).toEqual(["One", "Two", "Three"]);
    await ask("Other", one.id);
    expect(seen()).toEqual(["One", "Other"]);
    await ask("Four", two.id);
    expect(seen()).toEqual(["One", "Two", "Four"]);
    const last = await ask("Five", two.id);
    const both = await Promise.all([ask("Left", last.id), ask("Right", last.id)]);
    expect(both.map(({ output_text }) => output_text)).toEqual(["You said Left.", "You said Right."]);
    const runs = await world.runsOf("echo");
    const sessions = runs.slice(0, 7).map(({ sessionId }) => sessionId);
    expect(new Set(sessions).size).toBeGreaterThanOrEqual(4);
  });

  it("a response with store: false can be neither retrieved nor continued", async () => {
    const { id } = await responses.create({ model: "echo", input: "hi", store: false });
    expect(await thrownBy(responses.retrieve(id))).toMatchObject({ status: 404 });
    const next = responses.create({ model: "echo", input: "hi", previous_response_id: id });
    expect(await thrownBy(next)).toMatchObject({
      status: 404,
      code: "previous_response_not_found",
      param: "previous_response_id",
    });
  });

  it("an Idempotency-Key returns the response of the first request", async () => {
    const first = await responses.create({ model: "echo", input: "hi" });
    const body = { model: "echo", input: "again", previous_response_id: first.id };
    const options = { headers: { "Idempotency-Key": "once" } };
    const one = await responses.create(body, options);
    expect(await responses.create(body, options)).toEqual(one);
  });

  it("references to items of earlier answers are replaced by the items of the store", async () => {
    const first = await responses.create({ model: "echo", input: "One" });
    const id = first.output[0]?.id ?? "";
    await responses.create({
      model: "echo",
      input: [
        { role: "user", content: "One" },
        { type: "item_reference", id },
        { role: "user", content: "Two" },
      ],
    });
    expect(echoModel.calls.at(-1)?.messages.at(-2)).toMatchObject({
      role: "assistant",
      content: [{ type: "text", text: "You said One." }],
    });
  });
});

describe("functions of the client", () => {
  it.each([false, true])(
    "a call ends the response, and its output continues the run, with previous_response_id: %s",
    async (isStored) => {
      const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
      expect(first.status).toBe("completed");
      const [call] = callsOf(first);
      expect(call).toMatchObject({ name: "weather", arguments: '{"city":"Blois"}', status: "completed" });
      expect(await responses.retrieve(first.id)).toEqual(first);

      const sent = outputs(first, "rain");
      const body = isStored
        ? { model: "helper", previous_response_id: first.id, input: sent }
        : { model: "helper", input: [{ role: "user" as const, content: "Weather?" }, call!, ...sent] };
      const second = await responses.create({ ...body, tools: [weather] });
      expect(second).toMatchObject({ output_text: "It is rain.", previous_response_id: first.id });
      expect((await world.runsOf("helper"))[0]).toMatchObject({ status: "completed" });
      // The first answer stays as it was, and a repeated request has the same answer.
      expect(await responses.retrieve(first.id)).toEqual(first);
      const calls = helperModel.calls.length;
      expect(await responses.create({ ...body, tools: [weather] })).toEqual(second);
      expect(helperModel.calls.length).toBe(calls);
    },
  );

  it("a streamed call has the events of its arguments", async () => {
    const stream = responses.stream({ model: "helper", input: "Weather?", tools: [weather] });
    const types = (await eventsOf(stream)).map(({ type }) => type);
    expect(types.slice(-5)).toEqual([
      "response.output_item.added",
      "response.function_call_arguments.delta",
      "response.function_call_arguments.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const final = await stream.finalResponse();
    const next = responses.stream({
      model: "helper",
      previous_response_id: final.id,
      input: outputs(final as unknown as Response, "snow"),
    });
    expect((await next.finalResponse()).output_text).toBe("It is snow.");
  });

  it("two calls of one turn need both outputs", async () => {
    const first = await responses.create({ model: "helper", input: "Twice?", tools: [weather] });
    const both = outputs(first, "sun");
    expect(both).toHaveLength(2);
    const body = { model: "helper", previous_response_id: first.id };
    const error = await thrownBy(responses.create({ ...body, input: both.slice(0, 1) }));
    expect(error).toMatchObject({ status: 400, param: "input" });
    expect(error.message).toContain(both[1]?.call_id);
    expect((await responses.create({ ...body, input: both })).output_text).toBe("It is sun, sun.");
  });

  it("a message after the outputs is read before the next model call", async () => {
    const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
    await responses.create({
      model: "helper",
      previous_response_id: first.id,
      input: [...outputs(first, "rain"), { role: "user", content: "In French." }],
    });
    expect(JSON.stringify(helperModel.calls.at(-1)?.messages)).toContain("In French.");
  });

  it("other outputs for an older response continue a fork", async () => {
    const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
    const body = { model: "helper", previous_response_id: first.id };
    const rain = await responses.create({ ...body, input: outputs(first, "rain") });
    const snow = await responses.create({ ...body, input: outputs(first, "snow") });
    expect([rain.output_text, snow.output_text]).toEqual(["It is rain.", "It is snow."]);
    expect(await responses.retrieve(rain.id)).toEqual(rain);
    expect(await responses.create({ ...body, input: outputs(first, "snow") })).toEqual(snow);
    const after = await responses.create({ model: "helper", previous_response_id: snow.id, input: "So?" });
    expect(after.output_text).toBe("It is snow.");
  });

  it("calls and outputs of a conversation that is over are a part of the history", async () => {
    const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
    const sent = outputs(first, "rain");
    await responses.create({ model: "helper", previous_response_id: first.id, input: sent });
    const runs = (await world.runsOf("echo")).length;
    await responses.create({
      model: "echo",
      input: [
        { role: "user", content: "Weather?" },
        ...callsOf(first),
        ...sent,
        { role: "user", content: "So?" },
      ],
    });
    expect((await world.runsOf("echo")).length).toBe(runs + 1);
    expect(echoModel.calls.at(-1)?.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "user",
    ]);
  });

  it("two clients that send the outputs at the same time have the same answer", async () => {
    const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
    const body = { model: "helper", previous_response_id: first.id, input: outputs(first, "rain") };
    const [one, two] = await Promise.all([responses.create(body), responses.create(body)]);
    expect([one.output_text, two]).toEqual(["It is rain.", one]);
  });

  it("the outputs of another user's call are refused like those of an unknown call", async () => {
    const first = await responses.create({ model: "helper", input: "Weather?", tools: [weather] });
    const stranger = world.clientWith(await world.server.tokenOf("globex", "run", "ann"));
    expect(await thrownBy(stranger.responses.retrieve(first.id))).toMatchObject({ status: 404 });
    const other = world.clientWith(await world.server.tokenOf("acme", "run", "bob"));
    const error = await thrownBy(other.responses.create({ model: "helper", input: outputs(first, "rain") }));
    expect(error).toMatchObject({ status: 400, param: "input[0]" });
    expect(error.message).toContain("there is no call");
    expect(await thrownBy(other.responses.retrieve(first.id))).toMatchObject({ status: 404 });
    expect(await thrownBy(other.responses.cancel(first.id))).toMatchObject({ status: 404 });
    expect(await responses.cancel(first.id)).toMatchObject({
      status: "cancelled",
      output: [{ type: "message" }],
    });
  });
});

describe("background", () => {
  it("a response in the background answers at once, and is retrieved until it has ended", async () => {
    const started = await responses.create({ model: "slow", input: "Work", background: true });
    expect(["queued", "in_progress"]).toContain(started.status);
    await work.started.promise;
    expect(await responses.retrieve(started.id)).toMatchObject({ status: "in_progress", output: [] });
    const next = responses.create({ model: "slow", input: "And?", previous_response_id: started.id });
    expect(await thrownBy(next)).toMatchObject({ status: 400, param: "previous_response_id" });
    work.gate.resolve();
    const events = await eventsOf(await responses.retrieve(started.id, { stream: true }));
    expect(events.at(-1)).toMatchObject({ type: "response.completed" });
    expect(await responses.retrieve(started.id)).toMatchObject({
      status: "completed",
      output_text: "Finished.",
      background: true,
    });
    const rest = await eventsOf(await responses.retrieve(started.id, { stream: true, starting_after: 3 }));
    expect(rest).toEqual(events.slice(4));
  });

  it("two clients stream a response in the background with the same events as its creator", async () => {
    const creating = await responses.create({ model: "slow", input: "Work", background: true, stream: true });
    const seen: ResponseStreamEvent[] = [];
    let others: Promise<readonly (readonly ResponseStreamEvent[])[]> | undefined;
    for await (const event of creating) {
      seen.push(event);
      if (event.type !== "response.created") continue;
      const follow = async () => eventsOf(await responses.retrieve(event.response.id, { stream: true }));
      others = Promise.all([follow(), follow()]);
      await work.started.promise;
      work.gate.resolve();
    }
    expect(seen.at(-1)?.type).toBe("response.completed");
    expect(await others).toEqual([seen, seen]);
  });

  it("a response in the background is in progress while its run waits for a person, and cancel ends it", async () => {
    const started = await responses.create({ model: "clerk", input: "Send", background: true });
    await (await world.view.find((await world.runsOf("clerk"))[0]?.runId ?? ""))?.untilPersonIsNeeded();
    expect(await responses.retrieve(started.id)).toMatchObject({ status: "in_progress" });
    expect(await responses.cancel(started.id)).toMatchObject({ id: started.id, status: "cancelled" });
    expect(await responses.cancel(started.id)).toMatchObject({ status: "cancelled" });
  });

  it("cancel changes nothing after the end of a response", async () => {
    const done = await responses.create({ model: "echo", input: "hi" });
    expect(await responses.cancel(done.id)).toMatchObject({ status: "completed", output: done.output });
  });
});

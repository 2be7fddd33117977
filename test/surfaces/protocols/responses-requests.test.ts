import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { echoModel, OpenAiWorld, thrownBy } from "./test-openai.ts";

let world: OpenAiWorld;
let token: string;
beforeAll(async () => {
  world = await OpenAiWorld.open();
  token = await world.server.tokenOf("acme", "run", "ann");
});
afterAll(() => world.server.close());
beforeEach(() => world.begin());

/** Sends a body as it is. */
function post(body: string, path = "/v1/responses"): Promise<Response> {
  return fetch(`${world.server.url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body,
  });
}

describe("requests for a response", () => {
  it.each<[string, object, string | null]>([
    ["no input", { input: undefined }, null],
    ["an empty list", { input: [] }, "input"],
    ["an empty message", { input: [{ role: "user", content: "" }] }, "input[0].content"],
    ["an unknown item", { input: [{ type: "web_search_call" }] }, "input[0]"],
    ["an unknown role", { input: [{ role: "root", content: "a" }] }, "input[0]"],
    ["an answer at the end", { input: [{ role: "assistant", content: "a" }] }, "input"],
    [
      "a stored file",
      { input: [{ role: "user", content: [{ type: "input_file", file_id: "f" }] }] },
      "input[0].content[0]",
    ],
    [
      "a local image",
      { input: [{ role: "user", content: [{ type: "input_image", image_url: "file:///etc/passwd" }] }] },
      "input[0].content[0].image_url",
    ],
    [
      "the output of an unknown call",
      { input: [{ type: "function_call_output", call_id: "call_x_0", output: "a" }] },
      "input[0]",
    ],
    [
      "an output without an id",
      { input: [{ type: "function_call_output", output: "a" }] },
      "input[0].call_id",
    ],
    [
      "a call without its output",
      {
        input: [
          { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
          { role: "user", content: "a" },
        ],
      },
      "input[0]",
    ],
    [
      "a call with arguments that are no object",
      {
        input: [
          { type: "function_call", call_id: "c", name: "f", arguments: "{" },
          { role: "user", content: "a" },
        ],
      },
      "input[0]",
    ],
    ["a reference to an unknown item", { input: [{ type: "item_reference", id: "msg_x_1" }] }, "input[0].id"],
    ["a hosted tool", { tools: [{ type: "web_search" }] }, "tools[0]"],
    ["a conversation", { conversation: "conv_1" }, "conversation"],
    ["an effort", { reasoning: { effort: "high" } }, "reasoning"],
    ["a verbosity", { text: { verbosity: "low" } }, "text"],
    ["an unknown format", { text: { format: { type: "xml" } } }, "text"],
    ["a background that is not stored", { background: true, store: false }, "store"],
    ["a key of metadata that is taken", { metadata: { openResponses: "x" } }, "metadata"],
    ["an unknown parameter", { temprature: 1 }, "temprature"],
    ["a temperature that is too high", { temperature: 3 }, "temperature"],
    ["a cap of calls", { max_tool_calls: 3 }, "max_tool_calls"],
  ])("a request with %s is refused with 400 that names the parameter", async (_name, body, param) => {
    const runs = (await world.view.list()).runs.length;
    const error = await thrownBy(
      world.client.responses.create({ model: "echo", input: "hi", ...body } as never, { maxRetries: 0 }),
    );
    expect(error).toMatchObject({ status: 400, param, type: "invalid_request_error" });
    expect((await world.view.list()).runs.length).toBe(runs);
  });

  it("malformed JSON and a body that is too large get an error in the form of OpenAI, and one of 10 MB an answer", async () => {
    const malformed = await post('{"model":');
    expect([malformed.status, await malformed.json()]).toMatchObject([
      400,
      { error: { type: "invalid_request_error" } },
    ]);
    const long = await post(JSON.stringify({ model: "structured", input: "x".repeat(10_000_000) }));
    expect([long.status, await long.json()]).toMatchObject([200, { status: "completed" }]);
    const large = await post(JSON.stringify({ model: "echo", input: "x".repeat(30_000_000) }));
    expect([large.status, await large.json()]).toMatchObject([413, { error: { code: "too_large" } }]);
  });

  it("an unknown agent, response and method get 404 and 405 in the form of OpenAI", async () => {
    const { responses } = world.client;
    expect(await thrownBy(responses.create({ model: "gpt-5", input: "hi" }))).toMatchObject({
      status: 404,
      param: "model",
    });
    for (const id of ["resp_absent", "nonsense", "resp_absent.7"])
      expect(await thrownBy(responses.retrieve(id))).toMatchObject({ status: 404, param: "response_id" });
    const other = await fetch(`${world.server.url}/v1/responses`, {
      method: "PUT",
      headers: { authorization: `Bearer ${token}` },
    });
    expect([404, 405]).toContain(other.status);
  });

  it("starting_after is refused for a response whose events have no fixed numbers", async () => {
    const { id } = await world.client.responses.create({ model: "echo", input: "hi" });
    for (const query of [
      { stream: true, starting_after: 1 },
      { starting_after: 1 },
      { stream: true, starting_after: -1 },
    ] as const) {
      const error = await thrownBy(world.client.responses.retrieve(id, query));
      expect(error).toMatchObject({ status: 400, param: "starting_after" });
    }
  });

  it("a client that leaves a stream does not end the run, and its response is retrieved later", async () => {
    const stream = await world.client.responses.create({ model: "echo", input: "hi", stream: true });
    let id = "";
    for await (const event of stream)
      if (event.type === "response.created") {
        ({ id } = event.response);
        break;
      }
    const [run] = await world.runsOf("echo");
    await (await world.view.find(run?.runId ?? ""))?.result();
    expect(await world.client.responses.retrieve(id)).toMatchObject({ output_text: "You said hi." });
  });

  it("a body that arrives slowly starts a run when it is complete, and none if its client leaves", async () => {
    const body = JSON.stringify({ model: "echo", input: "slowly" });
    const open = () =>
      httpRequest(`${world.server.url}/v1/responses`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "content-length": body.length,
        },
      });
    const calls = echoModel.calls.length;
    const left = open();
    const hasEnded = new Promise((resolve) => left.on("error", resolve));
    left.write(body.slice(0, 10));
    left.destroy();
    await hasEnded;
    const slow = open();
    const status = new Promise<number | undefined>((resolve) =>
      slow.on("response", (response) => {
        response.resume();
        resolve(response.statusCode);
      }),
    );
    for (const char of body.slice(0, -1)) slow.write(char);
    slow.end(body.slice(-1));
    expect([await status, echoModel.calls.length]).toEqual([200, calls + 1]);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { Fault, messageText } from "../../../src/kernel/index.ts";
import type { PromptText, ServedAgent } from "../../../src/surfaces/server/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { startServer, type TestServer } from "./test-server.ts";

function named(name: string) {
  return tool({
    name,
    description: `Does ${name}.`,
    inputSchema: { type: "object", properties: {} } as const,
    execute: () => `${name} done`,
  });
}

const script = Array.from({ length: 100 }, (_each, index) =>
  index % 2 === 0 ? { toolCalls: [{ name: "look", input: {} }] } : "Done.",
);
const model = scriptedModel(script);
const cheap = scriptedModel(
  Array.from({ length: 20 }, () => "Cheap."),
  { modelId: "cheap" },
);
const dear = scriptedModel(
  Array.from({ length: 20 }, () => "Dear."),
  { modelId: "dear" },
);

const strict = new Agent({
  name: "strict",
  model,
  instructions: "Be strict.",
  tools: [named("look"), named("pay")],
});
const open = strict.with({
  name: "open",
  models: { spare: cheap },
  allowedChanges: { models: ["scripted/dear"], instructions: true, tools: true, toolResults: true },
});
const booker = new Agent({
  name: "booker",
  model: scriptedModel(["Booked."]),
  input: { type: "object", properties: { city: { type: "string", minLength: 1 } }, required: ["city"] },
});

let saved: PromptText = { path: "filed.md", instructions: "Be filed.", hash: "h1", refusal: null };
const filed: ServedAgent = {
  name: "filed",
  start: () => ({ agent: strict }),
  describe: () => strict,
  prompt: {
    read: async () => saved,
    save: async (instructions, hash) => {
      if (hash !== saved.hash) throw new Fault("version_mismatch", "filed.md has changed");
      saved = { ...saved, instructions, hash: "h2" };
      return saved;
    },
  },
};

let server: TestServer;
let run: string;
let admin: string;
beforeAll(async () => {
  server = await startServer([], {
    agents: [strict, open, booker, filed],
    runtimeOptions: {
      resolveModel: (name) => (name === "scripted/dear" ? dear : undefined),
      unknownPrice: "ignore",
    },
  });
  run = await server.tokenOf("acme", "run", "ann");
  admin = await server.tokenOf("acme", "admin");
});
afterAll(() => server.close());

async function started(
  agent: string,
  token = run,
): Promise<{ runId: string; second: number; callId: string }> {
  const { json } = await server.call("POST", "/api/runs", { token, body: { agent, input: "Go" } });
  const { runId } = json["run"] as { runId: string };
  await server.call("GET", `/api/runs/${runId}/result?waitMs=10000`, { token });
  const log = await server.call("GET", `/api/runs/${runId}/events?limit=5000`, { token });
  const events = log.json["events"] as unknown as readonly {
    type: string;
    seq: number;
    data: { callId: string };
  }[];
  const starts = events.filter(({ type }) => type === "message_start");
  const call = events.find(({ type }) => type === "tool_execution_end");
  return { runId, second: starts[1]?.seq ?? 0, callId: call?.data.callId ?? "" };
}

describe("changes of callers", () => {
  test("a run token changes nothing that the agent does not allow, and an admin token everything", async () => {
    const { runId, second, callId } = await started("strict");
    const fork = { at: second, keepsCommit: true };
    const wanted = [
      { instructions: "Pay all." },
      { model: "scripted/dear" },
      { tools: ["pay"] },
      { toolResults: [{ callId, output: "The user is verified." }] },
    ];
    for (const change of wanted) {
      const refused = await server.call("POST", `/api/runs/${runId}/fork`, {
        token: run,
        body: { ...fork, ...change },
      });
      expect(refused).toMatchObject({ status: 403, json: { code: "permission_denied" } });
      const made = await server.call("POST", `/api/runs/${runId}/fork`, {
        token: admin,
        body: { ...fork, ...change },
      });
      expect(made.status).toBe(201);
    }
    const changes = [{ instructions: "Pay all." }, { model: "scripted/dear" }, { tools: ["pay"] }];
    for (const change of changes) {
      const body = { agent: "strict", input: "Go", changes: change };
      expect((await server.call("POST", "/api/runs", { token: run, body })).status).toBe(403);
    }
    const { sessionId } = (await server.call("GET", `/api/runs/${runId}`, { token: run })).json;
    const path = `/api/sessions/${encodeURIComponent(sessionId as string)}`;
    const body = { model: "scripted/dear" };
    expect((await server.call("PATCH", path, { token: run, body })).status).toBe(403);
    expect((await server.call("PATCH", path, { token: admin, body })).status).toBe(200);
  });

  test("a run token makes the changes that the agent allows, and only with names that exist", async () => {
    const { runId, second, callId } = await started("open");
    const body = {
      at: second,
      keepsCommit: true,
      instructions: "Be open.",
      model: "scripted/dear",
      tools: ["pay"],
      toolResults: [{ callId, output: "nothing" }],
      budget: { maxCostUsd: 0.1 },
    };
    const made = await server.call("POST", `/api/runs/${runId}/fork`, { token: run, body });
    expect(made.status).toBe(201);
    const { runId: forkId } = made.json["run"] as { runId: string };
    const result = await server.call("GET", `/api/runs/${forkId}/result?waitMs=10000`, { token: run });
    expect(result.json["output"]).toBe("Dear.");
    expect(dear.calls.at(-1)?.messages.map(messageText)[0]).toBe("Be open.");
    expect(dear.calls.at(-1)?.tools?.map(({ name }) => name)).toEqual(["pay"]);
    for (const [change, status] of [
      [{ tools: ["rm"] }, 400],
      [{ model: "scripted/unknown" }, 403],
      [{ taskId: "t1", instructions: "x" }, 403],
    ] as const)
      expect(
        (
          await server.call("POST", `/api/runs/${runId}/fork`, {
            token: run,
            body: { at: second, ...change },
          })
        ).status,
      ).toBe(status);
    const direct = await server.call("POST", "/api/runs", {
      token: run,
      body: { agent: "open", input: "Go", changes: { model: "scripted/cheap", instructions: "Be cheap." } },
    });
    expect(direct.status).toBe(201);
  });

  test("an input that does not match the schema is refused before a run exists", async () => {
    const token = await server.tokenOf("schemas", "run");
    for (const [input, problem] of [
      ["Rome", "expected an object"],
      [{ city: "" }, "city"],
    ] as const) {
      const refused = await server.call("POST", "/api/runs", { token, body: { agent: "booker", input } });
      expect(refused).toMatchObject({ status: 400, json: { detail: expect.stringContaining(problem) } });
    }
    expect((await server.call("GET", "/api/runs", { token })).json["runs"]).toEqual([]);
    const body = { agent: "booker", input: { city: "Rome" } };
    expect((await server.call("POST", "/api/runs", { token, body })).status).toBe(201);
    const agent = await server.call("GET", "/api/agents/booker", { token });
    expect(agent.json["inputSchema"]).toMatchObject({ required: ["city"] });
  });
});

describe("GET /api/agents/{name}/options and PUT instructions", () => {
  test("the options are those of the caller, and the instructions are shown only to a caller who may change them", async () => {
    const options = async (agent: string, token: string) =>
      (await server.call("GET", `/api/agents/${agent}/options`, { token })).json;
    expect(await options("strict", run)).toMatchObject({
      models: ["scripted/script"],
      anyModel: false,
      changes: { instructions: false, tools: false, toolResults: false },
      instructions: null,
      file: null,
    });
    expect(await options("open", run)).toMatchObject({
      models: ["scripted/script", "scripted/cheap", "scripted/dear"],
      changes: { instructions: true, tools: true, toolResults: true },
      instructions: "Be strict.",
      tools: ["look", "pay"],
    });
    expect(await options("strict", admin)).toMatchObject({ anyModel: true, instructions: "Be strict." });
  });

  test("a prompt is saved by an admin of no tenant, and only over the text that was read", async () => {
    const save = (token: string, hash: string) =>
      server.call("PUT", "/api/agents/filed/instructions", {
        token,
        body: { instructions: "Be saved.", hash },
      });
    expect((await save(run, "h1")).status).toBe(403);
    expect((await save(admin, "h1")).json["detail"]).toContain("belongs to all tenants");
    expect((await save(server.admin, "h0")).status).toBe(409);
    expect((await save(server.admin, "h1")).json).toMatchObject({ instructions: "Be saved.", hash: "h2" });
    const { json } = await server.call("GET", "/api/agents/filed/options");
    expect(json["file"]).toMatchObject({ path: "filed.md", hash: "h2", refusal: null });
  });
});

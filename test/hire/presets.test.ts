import { mkdir, readdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import type { Agent } from "../../src/assembly/agent.ts";
import { hiredAgent, type HiredAgentOptions } from "../../src/assembly/hired-agent.ts";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import { answerJson, type Received } from "../capabilities/gateway/mock-upstream.ts";
import { agentCode } from "./agent-file.ts";
import { afterTest, hireWorld, tempFolder, type HireWorld } from "./hire-world.ts";

const bubblewrap = inject("bubblewrap");
const program = "program" in bubblewrap ? bubblewrap.program : "";

/** Answers in the three protocols, as long as the requests of the agents need them. */
const answers: Readonly<Record<string, object>> = {
  "/v1/messages": {
    content: [{ type: "text", text: "Hello." }],
    usage: { input_tokens: 5, output_tokens: 7 },
  },
  "/v1/responses": {
    status: "completed",
    output: [],
    usage: { input_tokens: 5, output_tokens: 7, total_tokens: 12 },
  },
  "/v1beta/models/gemini-3-pro:generateContent": {
    candidates: [{ content: { parts: [{ text: "Hello." }] } }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 },
  },
};

/**
 * A program that reads its configuration as the agent of a preset does. `call` is the source of a function that returns
 * the address, the headers and the body of its model call. The program prints what it was given and what the call
 * returned.
 */
function fake(call: string): readonly string[] {
  const first = `
    const { readFileSync, existsSync } = require("node:fs");
    const { join } = require("node:path");
    const methods = [];
    const home = (path) => readFileSync(join(process.env.HOME, path), "utf8");
    const call = ${call};
    const work = async ({ sessionId }) => {
      const { url, headers, body, ...seen } = call();
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
      const text = JSON.stringify({ methods, status: answer.status, answer: await answer.text(), ...seen });
      const update = { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
      send({ method: "session/update", params: { sessionId, update } });
    }`;
  const on = `({ id, method, params }) => {
    methods.push(method + (params?.methodId ? " " + params.methodId : ""));
    if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
    else if (method === "authenticate") send({ id, result: {} });
    else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/prompt") void work(params).then(() => send({ id, result: { stopReason: "end_turn" } }));
  }`;
  return agentCode(on, first);
}

const codex = fake(`() => {
  const config = readFileSync(join(process.env.CODEX_HOME, "config.toml"), "utf8");
  const value = (name) => JSON.parse(config.match(new RegExp("^" + name + " = (.*)$", "m"))[1]);
  return {
    url: value("base_url") + "/responses",
    headers: { authorization: "Bearer " + process.env[value("env_key")] },
    body: { model: value("model"), input: "hi" },
    mode: process.env.INITIAL_AGENT_MODE,
    inner: value("sandbox_mode"),
    retries: [value("request_max_retries"), value("stream_max_retries")],
    provider: value("model_provider"),
    isOwn: process.env.CODEX_HOME === join(process.env.HOME, ".codex"),
  };
}`);

const opencode = fake(`() => {
  const config = JSON.parse(process.env.OPENCODE_CONFIG_CONTENT);
  const { baseURL, apiKey } = config.provider.anthropic.options;
  const model = config.model.replace("anthropic/", "");
  return {
    url: baseURL + "/messages",
    headers: { "x-api-key": apiKey, "anthropic-version": "2023-06-01" },
    body: { model, max_tokens: 50, messages: [{ role: "user", content: "hi" }] },
    small: config.small_model,
    permission: config.permission,
    update: process.env.OPENCODE_DISABLE_AUTOUPDATE,
  };
}`);

const gemini = fake(`() => {
  const { security, privacy } = JSON.parse(home(".gemini/settings.json"));
  const { GOOGLE_GEMINI_BASE_URL, GEMINI_MODEL, GEMINI_API_KEY } = process.env;
  return {
    url: GOOGLE_GEMINI_BASE_URL + "/v1beta/models/" + GEMINI_MODEL + ":generateContent",
    headers: { "x-goog-api-key": GEMINI_API_KEY },
    body: { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
    reports: privacy.usageStatisticsEnabled,
    selected: security.auth.selectedType,
  };
}`);

const cases = {
  codex: {
    command: codex,
    model: "gpt-5.2",
    package: "@agentclientprotocol/codex-acp",
    methods: ["initialize", "session/new", "session/prompt"],
    path: "/v1/responses",
    seen: {
      mode: "workspace-write",
      inner: "workspace-write",
      retries: [0, 0],
      provider: "reeve",
      isOwn: true,
    },
  },
  opencode: {
    command: opencode,
    model: "claude-sonnet-4-5",
    package: "opencode-ai",
    methods: ["initialize", "session/new", "session/prompt"],
    path: "/v1/messages",
    seen: {
      small: "anthropic/claude-sonnet-4-5",
      permission: { edit: "ask", bash: "ask", webfetch: "ask" },
      update: "1",
    },
  },
  gemini: {
    command: gemini,
    model: "gemini-3-pro",
    package: "@google/gemini-cli",
    methods: ["initialize", "authenticate gemini-api-key", "session/new", "session/prompt"],
    path: "/v1beta/models/gemini-3-pro:generateContent",
    seen: { reports: false, selected: "gemini-api-key" },
  },
} as const;

interface PresetWorld extends HireWorld {
  readonly hirePreset: (preset: keyof typeof cases, options?: Partial<HiredAgentOptions>) => Agent;
}

/** A world whose gateway has all protocols. */
async function presetWorld(): Promise<PresetWorld> {
  const world = await hireWorld(({ path }: Received, response) => answerJson(response, answers[path] ?? {}));
  const upstream = { baseUrl: world.upstream.url, apiKey: "secret-key", provider: "mock" };
  const gateway = await Gateway.open({
    upstreams: { anthropic: upstream, openai: upstream, gemini: upstream },
  });
  afterTest(() => gateway.close());
  return {
    ...world,
    hirePreset: (preset, options = {}) =>
      hiredAgent({
        name: "coder",
        preset,
        model: cases[preset].model,
        command: cases[preset].command,
        gateway,
        folder: world.folder,
        sandbox: "off",
        permissions: permissions({ mode: "bypass" }),
        ...options,
      }),
  };
}

/** What the fake agent was given, and how its model call ended. */
async function seenBy({ runtime }: HireWorld, agent: Agent, sessionId?: string): Promise<unknown> {
  const run = await runtime.submit(agent, "Work.", sessionId === undefined ? {} : { sessionId });
  const { status, output, error } = await run.result();
  expect([status, error]).toEqual(["completed", null]);
  return JSON.parse(output as string) as unknown;
}

test.for(Object.keys(cases) as (keyof typeof cases)[])(
  "the preset %s configures its agent to call its model through the gateway, without a key",
  async (name) => {
    const world = await presetWorld();
    const { methods, path, seen } = cases[name];
    expect(await seenBy(world, world.hirePreset(name))).toMatchObject({ methods, status: 200, ...seen });
    expect(world.upstream.received.map((each) => each.path)).toEqual([path]);
    const { headers } = world.upstream.received[0] as Received;
    expect(JSON.stringify(headers)).toContain("secret-key");
  },
);

test.for(Object.keys(cases) as (keyof typeof cases)[])(
  "a missing program of the preset %s is reported with its package",
  async (name) => {
    const { runtime, hirePreset } = await presetWorld();
    const agent = hirePreset(name, { command: ["reeve-no-such-agent"] });
    const { error } = await (await runtime.submit(agent, "Work.")).result();
    expect([error?.code, error?.message]).toEqual([
      "agent_not_found",
      expect.stringContaining(`npm install -g ${cases[name].package}`),
    ]);
  },
);

test("a preset that writes files refuses the home of the user, and replaces a link in the private home", async () => {
  const world = await presetWorld();
  expect(() => world.hirePreset("codex", { home: "user" })).toThrow(
    'preset "codex" is configured by files in its home',
  );
  expect(() => world.hirePreset("opencode", { home: "user" })).not.toThrow();
  const agent = world.hirePreset("codex");
  await seenBy(world, agent, "one");
  const homes = join(process.env["REEVE_HOME"] ?? "", "homes");
  const [home = ""] = await readdir(homes);
  const outside = await tempFolder();
  await mkdir(join(outside, "target"));
  await rm(join(homes, home, ".codex"), { recursive: true });
  await symlink(join(outside, "target"), join(homes, home, ".codex"));
  await seenBy(world, agent, "one");
  expect(await readdir(homes)).toEqual([home]);
  expect(await readdir(join(outside, "target"))).toEqual([]);
});

test.skipIf(program === "")(
  "the inner sandbox of Codex is switched off in the sandbox of Reeve",
  async () => {
    const world = await presetWorld();
    const agent = world.hirePreset("codex", { sandbox: { mode: "enforce", program } });
    expect(await seenBy(world, agent)).toMatchObject({
      status: 200,
      mode: "agent-full-access",
      inner: "danger-full-access",
    });
  },
);

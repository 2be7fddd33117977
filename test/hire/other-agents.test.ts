import type { ServerResponse } from "node:http";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Agent } from "../../src/assembly/agent.ts";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import type { RunHandle } from "../../src/kernel/index.ts";
import { answerEvents, eventsOf as eventText, MockUpstream } from "../capabilities/gateway/mock-upstream.ts";
import {
  afterTest,
  eventOf,
  eventsOf,
  found,
  hiredEvents,
  hireWorld,
  tempFolder,
  type HireWorld,
} from "./hire-world.ts";

/** A world whose runs outlive its first runtime. The runtime ends its agents at once when it closes. */
async function storedWorld(): Promise<HireWorld> {
  return hireWorld([], { store: `sqlite:${join(await tempFolder(), "reeve.db")}`, closeGraceMs: 0 });
}

/** The example agent of the Agent Client Protocol's package. It calls no model, and cannot load a session. */
const example = [
  process.execPath,
  fileURLToPath(new URL("examples/agent.js", import.meta.resolve("acp-example-agent"))),
];

/** The texts of the messages of an agent. */
async function textsOf(run: RunHandle): Promise<string> {
  const events = await eventsOf(run);
  return events
    .map(({ type, data }) => (type === "message_end" ? JSON.stringify(data.message) : ""))
    .join("\n");
}

test.for([
  ["approved", "I've successfully updated the configuration", "ok"],
  ["denied", "I'll skip the configuration update", "denied"],
] as const)(
  "the example agent of the Agent Client Protocol works as an employee whose change is %s",
  async ([decision, words, status]) => {
    const world = await hireWorld([]);
    const run = await world.runtime.submit(world.hire({ command: example }), "Improve the project.");
    const asked = await eventOf(run, "approval_request");
    expect(asked).toMatchObject({
      kind: "foreign_tool_call",
      toolName: "edit",
      foreign: {
        title: "Modifying critical configuration file",
        kind: "edit",
        options: [
          { kind: "allow_once", name: "Allow this change" },
          { kind: "reject_once", name: "Skip this change" },
        ],
        locations: [{ path: "/home/user/project/config.json", isOutside: true }],
      },
    });
    await run.approve(asked.approvalId, decision === "approved" ? { decision } : { decision, reason: "no" });
    const result = await run.result();
    expect([result.status, result.error]).toEqual(["completed", null]);
    expect(result.output).toContain(words);
    const events = await eventsOf(run);
    const calls = events.flatMap(({ type, data }) => (type === "tool_execution_end" ? [data] : []));
    expect(calls.map(({ toolName, status: ended }) => [toolName, ended])).toEqual([
      ["read", "ok"],
      ["edit", status],
    ]);
    expect(events.filter(({ type }) => type === "metered_call")).toEqual([]);
    expect(world.upstream.received).toEqual([]);
  },
);

test("the example agent of the Agent Client Protocol, which cannot load a session, fails with cannot_resume after a kill", async () => {
  const world = await storedWorld();
  const agent = (): Agent => world.hire({ command: example });
  const first = await world.runtime.submit(agent(), "Improve the project.");
  await eventOf(first, "tool_execution_end");
  await world.runtime.close();
  const next = await world.reopen();
  next.register(agent());
  const run = await found(next, first.runId);
  const { status, error } = await run.result();
  expect([status, error?.code]).toEqual(["failed", "cannot_resume"]);
  expect(error?.message).toContain("Its prompt is not sent again");
  expect(await hiredEvents(run)).toEqual(["session_opened"]);
  expect(await textsOf(run)).toContain("Let me start by reading some files");
});

/** An answer of the scripted model of `reeve acp`, in the protocol of OpenAI. For `null`, the model never answers. */
type Answer = { readonly say: string } | { readonly tool: string; readonly input: object } | null;

function respond(response: ServerResponse, answer: NonNullable<Answer>, id: string): void {
  const item =
    "say" in answer
      ? {
          type: "message",
          id,
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: answer.say, annotations: [] }],
        }
      : {
          type: "function_call",
          id,
          call_id: id,
          status: "completed",
          name: answer.tool,
          arguments: JSON.stringify(answer.input),
        };
  const usage = {
    input_tokens: 5,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 100,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 105,
  };
  const whole = {
    id: `r${id}`,
    object: "response",
    created_at: 1,
    model: "gpt-5",
    status: "completed",
    output: [item],
    usage,
  };
  const told =
    "say" in answer
      ? [
          {
            type: "response.output_text.delta",
            item_id: id,
            output_index: 0,
            content_index: 0,
            delta: answer.say,
          },
        ]
      : [];
  const events = [
    { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
    ...told,
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: whole },
  ];
  answerEvents(response, events.map((event) => `event: ${event.type}\n${eventText(event)}`).join(""));
}

/** `reeve acp` as a hired agent, behind a gateway in front of a scripted model. */
async function reeveAcp(
  world: HireWorld,
  answers: readonly Answer[],
): Promise<{ readonly upstream: MockUpstream; readonly agent: () => Agent }> {
  const upstream = await MockUpstream.open((_received, response) => {
    const request = upstream.received.length;
    const answer = answers[Math.min(request, answers.length) - 1] ?? null;
    if (answer !== null) respond(response, answer, `item_${request}`);
  });
  afterTest(() => upstream.close());
  const gateway = await Gateway.open({
    upstreams: { openai: { baseUrl: upstream.url, apiKey: "secret-key", provider: "mock" } },
  });
  afterTest(() => gateway.close());
  const command = [
    process.execPath,
    resolve("src/surfaces/cli/main.ts"),
    "acp",
    "--tools",
    "all",
    "--sandbox",
    "off",
  ];
  const env = { REEVE_MODEL: "openai/gpt-5", NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "" };
  return { upstream, agent: () => world.hire({ command, env, gateway }) };
}

test("reeve acp works as a hired employee: it pays through the gateway, and a person approves its call with a diff", async () => {
  const world = await hireWorld([]);
  const { upstream, agent } = await reeveAcp(world, [
    { tool: "write", input: { path: "plan.txt", content: "Paint it.\n" } },
    { say: "It is written." },
  ]);
  const run = await world.runtime.submit(agent(), "Write a plan.");
  const asked = await eventOf(run, "approval_request");
  expect(asked).toMatchObject({ kind: "foreign_tool_call", toolName: "write" });
  expect(asked.foreign?.diffs?.map(({ path, isOutside }) => [path, isOutside])).toEqual([
    [join(world.folder, "plan.txt"), false],
  ]);
  expect(asked.foreign?.diffs?.[0]?.diff).toContain("+Paint it.");
  await run.approve(asked.approvalId, { decision: "approved" });
  const { status, output, costUsd, error } = await run.result();
  expect([status, output, error]).toEqual(["completed", "It is written.", null]);
  expect(await readFile(join(world.folder, "plan.txt"), "utf8")).toBe("Paint it.\n");
  // A dollar for a thousand output tokens, of which each of two answers has a hundred.
  expect([upstream.received.length, costUsd]).toEqual([2, 0.2]);
  expect(upstream.received.map(({ headers }) => headers["authorization"])).toEqual([
    "Bearer secret-key",
    "Bearer secret-key",
  ]);
});

test("reeve acp that is killed while it waits for its model continues its session, and has executed its command once", async () => {
  const world = await storedWorld();
  const { upstream, agent } = await reeveAcp(world, [
    { tool: "bash", input: { command: "echo x >> ran.txt" } },
    null,
    { say: "It has run." },
  ]);
  const first = await world.runtime.submit(agent(), "Run it.");
  await first.approve((await eventOf(first, "approval_request")).approvalId, { decision: "approved" });
  await expect.poll(() => upstream.received.length).toBe(2);
  await world.runtime.close();
  const next = await world.reopen();
  next.register(agent());
  const run = await found(next, first.runId);
  const { status, output, error } = await run.result();
  expect([status, output, error]).toEqual(["completed", "It has run.", null]);
  expect(await readFile(join(world.folder, "ran.txt"), "utf8")).toBe("x\n");
  const named = await hiredEvents(run);
  expect(named.filter((name) => name !== "usage")).toEqual([
    "session_opened",
    "session_loaded",
    "prompt_continued",
  ]);
  // The prompt and the command are once in each request after the command.
  const sent = upstream.received.map(({ body }) =>
    ["Run it.", "echo x"].map((text) => body.toString().split(text).length - 1).join(),
  );
  expect(sent[0]).toBe("1,0");
  expect(new Set(sent.slice(1))).toEqual(new Set(["1,1"]));
});

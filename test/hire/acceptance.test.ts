import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { OrchestratorAgent } from "../../src/entries/index.ts";
import { worktreeTools } from "../../src/entries/tools.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { testRepository } from "../capabilities/worktrees/repository.ts";
import { agentCode } from "./agent-file.ts";
import { eventsOf, hiredEvents, hireWorld, scripted, tempFolder } from "./hire-world.ts";

const bypass = permissions({ mode: "bypass" });
const request = JSON.stringify({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "hi" }],
});

/** The source of a call of the model. It returns whether the gateway allowed it. */
const call = `const call = async () => {
  const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token } = process.env;
  const headers = { "content-type": "application/json", authorization: "Bearer " + token };
  return (await fetch(url + "/v1/messages", { method: "POST", headers, body: ${JSON.stringify(request)} })).ok;
};`;

test("a hired agent that reports a normal end after the gateway refused its request is budget_exhausted, and can be topped up", async () => {
  const world = await hireWorld([{ say: "More." }]);
  const command = agentCode(
    `({ id, method, params }) => {
      const say = (sessionUpdate, text) =>
        send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate, content: { type: "text", text } } } });
      if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
      else if (method === "session/new") send({ id, result: { sessionId: "s" } });
      else if (method === "session/load") {
        say("user_message_chunk", "Loop.");
        send({ id, result: {} });
      } else if (method === "session/prompt") (async () => {
        const { text } = params.prompt[0];
        if (text === "Loop.") while (await call());
        require("node:fs").appendFileSync("prompts.txt", text.slice(0, 30) + "\\n");
        say("agent_message_chunk", text === "Loop." ? "API Error: 402" : "Enough.");
        send({ id, result: { stopReason: "end_turn" } });
      })();
    }`,
    call,
  );
  const agent = world.hire({ command, budget: { maxCostUsd: 0.35 } });
  const run = await world.runtime.submit(agent, "Loop.");
  const { status, costUsd } = await run.result();
  expect(status).toBe("budget_exhausted");
  const limits = world.upstream.bodies.flatMap(({ max_tokens: limit }) =>
    typeof limit === "number" ? [limit] : [],
  );
  const billed = limits.reduce((sum, limit) => sum + Math.min(limit, 100), 0);
  expect(billed).toBeGreaterThan(0);
  expect(billed / 1_000).toBeLessThanOrEqual(0.35);
  expect(costUsd).toBeLessThanOrEqual(0.35);
  await run.topUp({ maxCostUsd: 1 });
  const second = await run.result();
  expect([second.status, second.output]).toEqual(["completed", "Enough."]);
  expect(await readFile(join(world.folder, "prompts.txt"), "utf8")).toMatch(
    /^Loop\.\nYour process was interrupted[^\n]*\n$/u,
  );
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
});

test("two hired agents under one budget work in two worktrees, and their conflict is reported by file", async () => {
  const answers = {
    one: scripted([{ run: "echo one > a.txt" }, { say: "One." }]),
    two: scripted([{ run: "echo two > a.txt" }, { say: "Two." }]),
  };
  const world = await hireWorld((received, response) =>
    answers[received.body.toString().includes("Write one") ? "one" : "two"](received, response),
  );
  const { path, trees, git } = testRepository();
  const isolation = { worktree: { repository: path, folder: trees } };
  const hired = (["one", "two"] as const).map((name) =>
    world.hire({ name, folder: path, isolation, permissions: bypass }),
  );
  const hires = (["one", "two"] as const).map((name) => ({
    toolCalls: [{ name: `handoff_${name}`, input: { task: `Write ${name}.` } }],
  }));
  const merge = { toolCalls: [{ name: "merge_worktrees", input: { tasks: ["t1", "t2"] } }] };
  const lead = new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([...hires, merge, "done"]),
    subAgents: hired,
    tools: worktreeTools({ folder: trees }),
  });
  const head = git("rev-parse main");
  const run = await world.runtime.submit(lead, "Work.", { budget: { maxCostUsd: 5 } });
  const { output, costUsd, error } = await run.result();
  expect([output, error]).toEqual(["done", null]);
  const events = await eventsOf(run);
  const merges = events.flatMap(({ type, data }) => (type === "worktree_merge" ? [data] : []));
  expect(merges).toMatchObject([{ status: "conflict", conflicts: { count: 1, paths: ["a.txt"] } }]);
  expect([git("rev-parse main"), git("status --porcelain")]).toEqual([head, ""]);
  expect(world.upstream.received).toHaveLength(4);
  expect(costUsd).toBeGreaterThanOrEqual(0.4);
  expect(costUsd).toBeLessThanOrEqual(5);
});

test("the token of a hired agent is refused after its task, and neither the token nor the provider's key is in the store", async () => {
  const folder = await tempFolder();
  const world = await hireWorld([{ run: "echo $ANTHROPIC_AUTH_TOKEN > token.txt" }, { say: "Done." }], {
    store: `sqlite:${join(folder, "reeve.db")}`,
  });
  const run = await world.runtime.submit(world.hire({ permissions: bypass }), "Work.");
  expect((await run.result()).status).toBe("completed");
  const token = (await readFile(join(world.folder, "token.txt"), "utf8")).trim();
  expect(token.length).toBeGreaterThan(20);
  const response = await fetch(`${world.gateway.url}/v1/messages`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: request,
  });
  expect(response.status).toBe(401);
  await world.runtime.close();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    expect([file, bytes.includes(token), bytes.includes("secret-key")]).toEqual([file, false, false]);
  }
});

test("a call is refused if the hired agent offers no option to allow it once, and no option that it would remember is chosen", async () => {
  const world = await hireWorld([]);
  const command = agentCode(
    `({ id, method, result }) => {
      const options = [{ optionId: "always", name: "Yes", kind: "allow_always" }, { optionId: "no", name: "No", kind: "reject_once" }];
      const toolCall = { toolCallId: "c", kind: "execute", rawInput: { command: "ls" } };
      if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
      else if (method === "session/new") send({ id, result: { sessionId: "s" } });
      else if (method === "session/prompt") {
        prompt = id;
        send({ id: "ask", method: "session/request_permission", params: { sessionId: "s", toolCall, options } });
      } else if (id === "ask") {
        require("node:fs").writeFileSync("answer.txt", result.outcome.optionId);
        send({ id: prompt, result: { stopReason: "end_turn" } });
      }
    }`,
    "let prompt",
  );
  const run = await world.runtime.submit(world.hire({ command }), "Work.");
  expect((await run.result()).status).toBe("completed");
  expect(await readFile(join(world.folder, "answer.txt"), "utf8")).toBe("no");
  expect(await hiredEvents(run)).toEqual(["session_opened", "permission_refused"]);
  expect((await eventsOf(run)).some(({ type }) => type === "approval_request")).toBe(false);
});

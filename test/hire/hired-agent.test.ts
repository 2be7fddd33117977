import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { agentCode, ready } from "./agent-file.ts";
import {
  eventOf,
  eventsOf,
  hiredEvents,
  hireWorld,
  isAlive,
  poll,
  scripted,
  tempFolder,
} from "./hire-world.ts";

test("a hired agent answers, asks before its command, and pays for its requests through the gateway", async () => {
  const world = await hireWorld([{ say: "I write.", run: "echo done > out.txt" }, { say: "It is written." }]);
  const run = await world.runtime.submit(world.hire(), "Write a file.");
  const { approvalId, kind, toolName, input, foreign } = await eventOf(run, "approval_request");
  expect([kind, toolName, input]).toEqual(["foreign_tool_call", "shell", { command: "echo done > out.txt" }]);
  expect(foreign).toMatchObject({ program: "coder", kind: "execute", title: "echo done > out.txt" });
  await run.approve(approvalId, { decision: "approved" });
  const { status, output, costUsd, usage, error } = await run.result();
  expect([status, output, error]).toEqual(["completed", "It is written.", null]);
  expect(costUsd).toBeCloseTo(0.2, 9);
  expect(usage.costUsd).toBeCloseTo(0.2, 9);
  expect(usage.outputTokens).toBeGreaterThan(0);
  expect(await readFile(join(world.folder, "out.txt"), "utf8")).toBe("done\n");
  const told = (await eventsOf(run)).flatMap(({ type, data }) =>
    "source" in data && data.source === "acp" ? [type] : [],
  );
  expect(told).toEqual([
    "message_start",
    "message_end",
    "tool_execution_start",
    "tool_execution_end",
    "message_start",
    "message_end",
  ]);
  expect(await hiredEvents(run)).toEqual(["session_opened"]);
});

test("the log contains a file change that a hired agent reports only at the end of its call, and repeats no member", async () => {
  const world = await hireWorld([]);
  const command = agentCode(
    `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/prompt") {
      const tell = (update) => send({ method: "session/update", params: { sessionId: "s", update } });
      const start = { sessionUpdate: "tool_call", kind: "edit", status: "pending", rawInput: { path: "a.txt" } };
      const end = { sessionUpdate: "tool_call_update", status: "completed" };
      const diff = { type: "diff", path: "a.txt", oldText: "one", newText: "two" };
      tell({ ...start, toolCallId: "late", title: "Edit" });
      tell({ ...end, toolCallId: "late", content: [diff], locations: [{ path: "/etc/hosts" }] });
      tell({ ...start, toolCallId: "early", title: "Edit", content: [diff] });
      tell({ ...end, toolCallId: "early", content: [] });
      send({ id, result: { stopReason: "end_turn" } });
    } }`,
  );
  const run = await world.runtime.submit(world.hire({ command }), "Edit.");
  expect((await run.result()).status).toBe("completed");
  const told = (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "tool_execution_start" || type === "tool_execution_end" ? [data] : [],
  );
  const [lateStart, lateEnd, earlyStart, earlyEnd] = told.map(({ foreign }) => foreign);
  expect([lateStart?.title, lateStart?.diffs]).toEqual(["Edit", undefined]);
  expect(Object.keys(lateEnd ?? {})).toEqual(["locations", "diffs"]);
  expect(lateEnd?.locations?.[0]).toEqual({ path: "/etc/hosts", isOutside: true });
  expect(lateEnd?.diffs?.[0]?.diff).toContain("+two");
  expect(earlyStart?.diffs?.[0]?.diff).toContain("-one");
  expect(earlyEnd).toBeUndefined();
});

test("a hired agent whose request the gateway refuses for lack of budget continues its session after a top-up", async () => {
  const world = await hireWorld([{ run: "echo x >> out.txt" }]);
  const agent = world.hire({ budget: { maxCostUsd: 0.35 }, permissions: permissions({ mode: "bypass" }) });
  const run = await world.runtime.submit(agent, "Loop for ever.");
  const first = await run.result();
  expect([first.status, first.costUsd]).toEqual(["budget_exhausted", 0.35]);
  world.upstream.answer = scripted([{ say: "Enough." }]);
  await run.topUp({ maxCostUsd: 1 });
  const second = await run.result();
  expect([second.status, second.output]).toEqual(["completed", "Enough."]);
  expect(second.costUsd).toBeCloseTo(0.45, 9);
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  const texts = JSON.stringify(world.upstream.bodies.at(-1)?.["messages"]);
  expect(texts.split("Loop for ever.")).toHaveLength(2);
  expect(texts).toContain("Continue where you stopped");
});

test("a cancel ends the turn and the processes of a hired agent, also processes that left its group", async () => {
  const world = await hireWorld([{ run: "setsid sleep 300 & echo $! > pid.txt; echo started; sleep 300" }]);
  const run = await world.runtime.submit(world.hire(), "Sleep.");
  const { approvalId } = await eventOf(run, "approval_request");
  await run.approve(approvalId, { decision: "approved" });
  const pid = await poll(async () => Number(await readFile(join(world.folder, "pid.txt"), "utf8")));
  await run.cancel("enough");
  expect((await run.result()).status).toBe("cancelled");
  await expect.poll(() => isAlive(pid)).toBe(false);
  const requests = world.upstream.received.length;
  expect(requests).toBe(1);
});

test("a hired agent sees a closed environment, a home folder of its own, and no key of a provider", async () => {
  process.env["REEVE_TEST_SECRET"] = "secret";
  process.env["REEVE_TEST_PASSED"] = "passed";
  const world = await hireWorld([{ run: "env" }, { say: "ok" }]);
  const agent = world.hire({
    permissions: permissions({ mode: "bypass" }),
    inheritEnv: ["REEVE_TEST_PASSED"],
    env: { OWN: "own" },
  });
  const run = await world.runtime.submit(agent, "Show it.");
  await run.result();
  const ends = (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "tool_execution_end" ? [data.result.output] : [],
  );
  const [shown] = ends as readonly { readonly text: string }[];
  const variables = new Map(shown?.text.split("\n").map((line) => line.split(/=(.*)/su) as [string, string]));
  expect([variables.get("OWN"), variables.get("REEVE_TEST_PASSED")]).toEqual(["own", "passed"]);
  expect(variables.has("REEVE_TEST_SECRET")).toBe(false);
  expect(variables.get("HOME")).toContain("/homes/coder-");
  expect(variables.get("ANTHROPIC_BASE_URL")).toBe(world.gateway.url);
  expect(shown?.text).not.toContain("secret-key");
});

test("a later run of a hired agent's conversation loads the session, and follow-ups and steering reach the agent", async () => {
  const world = await hireWorld([{ say: "Blue." }, { say: "Green." }, { say: "Red." }]);
  const agent = world.hire();
  const first = await world.runtime.submit(agent, "Which colour?", { sessionId: "colours" });
  expect((await first.result()).output).toBe("Blue.");
  const second = await world.runtime.submit(agent, "And then?", { sessionId: "colours" });
  await second.followUp("And after that?");
  expect((await second.result()).output).toBe("Red.");
  expect(await hiredEvents(second)).toEqual(["session_loaded"]);
  const { messages } = world.upstream.bodies.at(-1) as {
    readonly messages: readonly { readonly content: readonly { readonly text: string }[] }[];
  };
  const asked = messages.map(({ content }) => content[0]?.text);
  expect(asked).toEqual(["Which colour?", "Blue.", "And then?", "Green.", "And after that?"]);
});

test("steering reaches a hired agent while it works", async () => {
  const [asked, steered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const world = await hireWorld(async (received, response) => {
    const isFirst = world.upstream.received.length === 1;
    asked.resolve();
    if (isFirst) await steered.promise;
    await scripted([{ say: isFirst ? "Working." : "Steered." }])(received, response);
  });
  const run = await world.runtime.submit(world.hire(), "Work.");
  await asked.promise;
  await run.steer("Faster.");
  expect((await eventOf(run, "architecture_event", 2)).name).toBe("steering_injected");
  steered.resolve();
  expect((await run.result()).output).toBe("Steered.");
  expect(JSON.stringify(world.upstream.bodies.at(-1))).toContain("Faster.");
});

test("a hired agent with isolation works in a worktree, and leaves its work as a commit", async () => {
  const world = await hireWorld([{ run: "echo changed > a.txt" }, { say: "Changed." }]);
  await writeFile(join(world.folder, "a.txt"), "old\n");
  const git = (...args: readonly string[]) =>
    promisify(execFile)("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], {
      cwd: world.folder,
    });
  await git("init", "-q");
  await git("add", ".");
  await git("commit", "-qm", "first");
  const isolation = { worktree: { repository: world.folder, folder: await tempFolder() } };
  const agent = world.hire({ isolation, permissions: permissions({ mode: "bypass" }) });
  const run = await world.runtime.submit(agent, "Change it.");
  expect((await run.result()).output).toBe("Changed.");
  expect(await readFile(join(world.folder, "a.txt"), "utf8")).toBe("old\n");
  const finished = (await eventsOf(run)).flatMap(({ type, data }) =>
    type === "worktree_finish" ? [data] : [],
  );
  expect(finished).toMatchObject([{ changed: { paths: ["a.txt"] }, state: "kept" }]);
  const { stdout } = await git("show", `${finished[0]?.commit}:a.txt`);
  expect(stdout).toBe("changed\n");
  expect(JSON.stringify(world.upstream.bodies[0])).toContain("You work in a git worktree of your own");
});

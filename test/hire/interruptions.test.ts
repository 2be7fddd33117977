import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { endAllOf, endProcessesOf, newMark, taskVariable } from "../../src/capabilities/hire/orphans.ts";
import type { RuntimeOptions } from "../../src/runtime/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { agentCode } from "./agent-file.ts";
import {
  afterTest,
  eventOf,
  eventsOf,
  found,
  hiredEvents,
  hireWorld,
  isAlive,
  poll,
  scripted,
  tempFolder,
} from "./hire-world.ts";
import { killedOnItsMachine, onItsMachine } from "./two-machines.ts";

test("L21: on SQLite, a run of a hired agent whose machine has no worker waits for the machine, and continues only there", async () => {
  expect(await killedOnItsMachine()).toEqual(onItsMachine);
});

/** The body of a request for a model. */
const request = JSON.stringify({
  model: "m",
  max_tokens: 100,
  messages: [{ role: "user", content: "hi" }],
});

test("a prompt that is missing in the history a hired agent has loaded is sent again, and the log records this", async () => {
  const world = await hireWorld([], {
    store: `sqlite:${join(await tempFolder(), "reeve.db")}`,
    closeGraceMs: 0,
  });
  const command = agentCode(
    `({ id, method, params }) => {
    if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
    else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/load") {
      const content = { type: "text", text: "Another prompt." };
      send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "user_message_chunk", content } } });
      isLoaded = true;
      send({ id, result: {} });
    } else if (method === "session/prompt") {
      require("node:fs").appendFileSync("prompts.txt", params.prompt[0].text + "\\n");
      if (isLoaded) send({ id, result: { stopReason: "end_turn" } });
    }
  }`,
    "let isLoaded = false",
  );
  const first = await world.runtime.submit(world.hire({ command }), "Work.");
  const prompts = join(world.folder, "prompts.txt");
  await poll(async () => readFile(prompts, "utf8"));
  await world.runtime.close();
  const next = await world.reopen();
  next.register(world.hire({ command }));
  const run = await found(next, first.runId);
  expect((await run.result()).status).toBe("completed");
  expect(await readFile(prompts, "utf8")).toBe("Work.\nWork.\n");
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_resent"]);
});

test.for([
  [0.105, []],
  [0.094, [{ reportedUsd: 0.094, ledgerUsd: 0.1 }]],
  [0.106, [{ reportedUsd: 0.106, ledgerUsd: 0.1 }]],
] as const)(
  "a cost of %s that a hired agent reports for 0.1 is in the log if it differs by more than 5 percent",
  async ([reported, expected]) => {
    const world = await hireWorld([{ say: "Done." }]);
    const command = agentCode(`async ({ id, method }) => {
      if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: {} } });
      else if (method === "session/new") send({ id, result: { sessionId: "s" } });
      else if (method === "session/prompt") {
        const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token } = process.env;
        const headers = { "content-type": "application/json", authorization: "Bearer " + token };
        await (await fetch(url + "/v1/messages", { method: "POST", headers, body: ${JSON.stringify(request)} })).text();
        const cost = { amount: ${reported}, currency: "USD" };
        send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "usage_update", used: 1, size: 2, cost } } });
        send({ id, result: { stopReason: "end_turn" } });
      }
    }`);
    const run = await world.runtime.submit(world.hire({ command }), "Work.");
    const { status, costUsd } = await run.result();
    expect(status).toBe("completed");
    expect(costUsd).toBeCloseTo(0.1, 9);
    const told = (await eventsOf(run)).flatMap(({ type, data }) =>
      type === "architecture_event" && data.name === "cost_differs" ? [data.data] : [],
    );
    expect(told).toEqual(expected);
  },
);

test("ending the processes of one attempt also ends one that has left its group, and no process of another attempt", async () => {
  const [first, second] = [newMark(), newMark()].map((mark) => {
    const child = spawn("sleep", ["300"], {
      env: { [taskVariable]: mark, PATH: process.env["PATH"] },
      detached: true,
    });
    afterTest(async () => child.kill("SIGKILL"));
    return { mark, child, pid: child.pid as number };
  });
  if (first === undefined || second === undefined) throw new Error("there are no processes");
  await Promise.all([once(first.child, "spawn"), once(second.child, "spawn")]);
  const exit = once(first.child, "exit");
  await endAllOf(first.mark);
  await exit;
  expect(await isAlive(first.pid)).toBe(false);
  expect(await isAlive(second.pid)).toBe(true);
  expect(endProcessesOf([first.mark, second.mark])).toEqual([second.pid]);
});

test("a run with the id of a run in another store does not end the hired agents of that store", async () => {
  const said = Promise.withResolvers<void>();
  const hang = async (received: Parameters<typeof answers>[0], response: Parameters<typeof answers>[1]) => {
    await said.promise;
    await answers(received, response);
  };
  const answers = scripted([{ say: "Done." }]);
  const [one, other] = [await hireWorld(hang), await hireWorld([{ run: "true" }])];
  const run = await one.runtime.submit(one.hire(), "Work.", { runId: "run_same" });
  await poll(async () => one.upstream.received.length > 0);
  const same = await other.runtime.submit(
    other.hire({ budget: { maxCostUsd: 0.15 }, permissions: permissions({ mode: "bypass" }) }),
    "Work.",
    {
      runId: "run_same",
    },
  );
  expect((await same.result()).status).toBe("budget_exhausted");
  other.upstream.answer = answers;
  await same.topUp({ maxCostUsd: 1 });
  expect((await same.result()).status).toBe("completed");
  said.resolve();
  expect((await run.result()).output).toBe("Done.");
  expect(await hiredEvents(run)).toEqual(["session_opened"]);
});

/**
 * An agent that calls its model twice for a prompt, and once to continue. After each call it writes a line with its
 * process id.
 */
const asking = agentCode(
  `async ({ id, method, params }) => {
    if (method === "initialize") send({ id, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } });
    else if (method === "session/new") send({ id, result: { sessionId: "s" } });
    else if (method === "session/load") {
      const content = { type: "text", text: "Work." };
      send({ method: "session/update", params: { sessionId: "s", update: { sessionUpdate: "user_message_chunk", content } } });
      send({ id, result: {} });
    } else if (method === "session/cancel") answer(prompt, "cancelled");
    else if (method === "session/prompt") {
      prompt = id;
      for (let calls = params.prompt[0].text === "Work." ? 2 : 1; calls > 0; calls--) await call();
      answer(id, "end_turn");
    }
  }`,
  `let prompt;
   const answer = (id, stopReason) => {
     if (prompt === id) send({ id, result: { stopReason } });
     prompt = undefined;
   };
   const call = async () => {
     const { ANTHROPIC_BASE_URL: url, ANTHROPIC_AUTH_TOKEN: token } = process.env;
     const headers = { "content-type": "application/json", authorization: "Bearer " + token };
     const body = ${JSON.stringify(request)};
     const { ok } = await fetch(url + "/v1/messages", { method: "POST", headers, body });
     require("node:fs").appendFileSync("calls.txt", process.pid + " " + ok + "\\n");
   }`,
);

/** A hired agent whose run is paused while its first request is open, and that has then received the answer. */
async function pausedWorld(options: RuntimeOptions = {}) {
  const paused = Promise.withResolvers<void>();
  const world = await hireWorld(async (received, response) => {
    await paused.promise;
    await scripted([{ say: "Done." }])(received, response);
  }, options);
  const run = await world.runtime.submit(world.hire({ command: asking }), "Work.");
  await poll(async () => world.upstream.received.length > 0);
  await run.pause();
  paused.resolve();
  await eventOf(run, "run_pause");
  const calls = join(world.folder, "calls.txt");
  const pid = await poll(async () => Number.parseInt(await readFile(calls, "utf8"), 10));
  return { world, run, calls, pid };
}

test("a hired agent of a paused run waits with its next request, and continues in its session once the run is resumed", async () => {
  const { world, run, calls, pid } = await pausedWorld();
  expect(world.upstream.received).toHaveLength(1);
  await run.resume();
  expect((await run.result()).status).toBe("completed");
  expect(await hiredEvents(run)).toEqual(["session_opened"]);
  expect(await readFile(calls, "utf8")).toBe(`${pid} true\n${pid} true\n`);
});

test("a hired agent without a seat for 60 s ends its turn, and continues its session after the recall", async () => {
  const clock = new FakeClock();
  const { world, run, calls, pid } = await pausedWorld({ clock });
  await expect
    .poll(async () => {
      await clock.advance(60_000);
      return isAlive(pid);
    })
    .toBe(false);
  expect(world.upstream.received).toHaveLength(1);
  await run.resume();
  expect((await run.result()).status).toBe("completed");
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  expect(world.upstream.received).toHaveLength(2);
  expect(await readFile(calls, "utf8")).toMatch(/^\d+ true\n(\d+ false\n)?\d+ true\n$/u);
});

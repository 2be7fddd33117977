import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { agentCode, agentFile, ready } from "./agent-file.ts";
import {
  afterTest,
  eventOf,
  eventsOf,
  found,
  hiredEvents,
  hireWorld,
  isAlive,
  poll,
  tempFolder,
} from "./hire-world.ts";

const bypass = permissions({ mode: "bypass" });

test("after kill -9, a hired agent continues its session, has executed its command once, and leaves no process behind", async () => {
  const file = join(await tempFolder(), "reeve.db");
  const world = await hireWorld([{ run: "echo $$ >> ran.txt; sleep 300" }, { say: "Done." }], {
    store: `sqlite:${file}`,
  });
  const [program = "", ...args] = agentFile(
    "owner-process",
    file,
    world.upstream.url,
    world.folder,
    "Run it.",
  );
  const owner = spawn(program, args, { stdio: "inherit" });
  afterTest(async () => owner.kill("SIGKILL"));
  const ran = join(world.folder, "ran.txt");
  const pid = await poll(async () => Number(await readFile(ran, "utf8")));
  owner.kill("SIGKILL");
  await once(owner, "exit");
  expect(await isAlive(pid)).toBe(true);

  world.runtime.register(world.hire({ permissions: bypass }));
  const run = await found(world.runtime, "run_killed");
  const { status, output, error } = await run.result();
  expect([status, output, error]).toEqual(["completed", "Done.", null]);
  expect(await isAlive(pid)).toBe(false);
  expect(await readFile(ran, "utf8")).toBe(`${pid}\n`);
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  const sent = JSON.stringify(world.upstream.bodies.at(-1)?.["messages"]);
  expect(sent.split("Run it.")).toHaveLength(2);
  expect((await eventsOf(run)).filter(({ type }) => type === "run_bind")).toHaveLength(1);
});

test("a hired agent that cannot load its session fails with cannot_resume after a crash, and its prompt is not sent again", async () => {
  const world = await hireWorld([], {
    store: `sqlite:${join(await tempFolder(), "reeve.db")}`,
    closeGraceMs: 0,
  });
  const command = agentCode(
    `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } });
       else if (method === "session/prompt") require("node:fs").appendFileSync("prompts.txt", "prompt\\n"); }`,
  );
  const run = await world.runtime.submit(world.hire({ command }), "Work.");
  const prompts = join(world.folder, "prompts.txt");
  await poll(async () => readFile(prompts, "utf8"));
  await world.runtime.close();
  const next = await world.reopen();
  next.register(world.hire({ command }));
  const { status, error } = await (await found(next, run.runId)).result();
  expect([status, error?.code]).toEqual(["failed", "cannot_resume"]);
  expect(error?.message).toContain("cannot load a session. Its prompt is not sent again");
  expect(await readFile(prompts, "utf8")).toBe("prompt\n");
});

test("a question of a hired agent outlives its process, and the answer applies when the agent asks about the same call again", async () => {
  const command = "echo x >> ran.txt";
  const world = await hireWorld([{ run: command }, { run: command }, { say: "Done." }], {
    store: `sqlite:${join(await tempFolder(), "reeve.db")}`,
  });
  const first = await world.runtime.submit(world.hire(), "Run it.");
  const { approvalId } = await eventOf(first, "approval_request");
  await world.runtime.close();
  const next = await world.reopen();
  next.register(world.hire());
  const run = await found(next, first.runId);
  expect((await run.pendingApprovals()).map((each) => each.approvalId)).toEqual([approvalId]);
  await run.approve(approvalId, { decision: "approved" });
  expect((await run.result()).output).toBe("Done.");
  expect(await readFile(join(world.folder, "ran.txt"), "utf8")).toBe("x\n");
  const asked = (await eventsOf(run)).filter(({ type }) => type === "approval_request");
  expect(asked).toHaveLength(1);
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
});

import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { codeOf } from "../../src/capabilities/files/error-code.ts";
import {
  formatAgentId,
  Priority,
  type HostedAgent,
  type RunHandle,
  type TaskHandle,
} from "../../src/kernel/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { agentFile } from "./agent-file.ts";
import {
  eventOf,
  eventsOf,
  hiredEvents,
  hireWorld,
  isAlive,
  poll,
  scripted,
  type HireWorld,
  type Turn,
} from "./hire-world.ts";

const bypass = permissions({ mode: "bypass" });

/** A command that writes the process id of the agent to a file, and ends when text is written to the pipe `go`. */
const slow = { run: "echo $PPID >> ran.txt; cat go" };

/** The process of the agent that runs the slow command. */
function pidIn({ folder }: HireWorld): Promise<number> {
  return poll(async () => Number.parseInt(await readFile(join(folder, "ran.txt"), "utf8"), 10));
}

/** Advances the clock until a process has ended. */
async function untilEnded(pid: number, clock: FakeClock): Promise<void> {
  await expect
    .poll(async () => {
      await clock.advance(60_000);
      return isAlive(pid);
    })
    .toBe(false);
}

/** A hired agent with low priority in the middle of a command, whose seat another task takes until `ended` resolves. */
async function preempted(clock: FakeClock) {
  const world = await hireWorld([slow, { say: "Done." }], { clock });
  await promisify(execFile)("mkfifo", [join(world.folder, "go")]);
  const [hurry, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const low = world.hire({ permissions: bypass });
  const high: HostedAgent = {
    id: formatAgentId({ name: "high" }),
    run: (ctx) => ctx.step("urgent", async () => (await ended.promise, "high")),
  };
  const lead: HostedAgent = {
    id: formatAgentId({ name: "lead" }),
    subAgents: [low, high],
    run: async (ctx) => {
      const tasks: TaskHandle[] = [];
      for (const [agent, priority] of [
        [low, Priority.LOW],
        [high, Priority.HIGH],
      ] as const) {
        const spawned = await ctx.spawn(agent.id, "Work.", { priority });
        if (spawned.kind === "spawned") tasks.push(spawned.handle);
        await ctx.step("hurry", async () => (await hurry.promise, null));
      }
      return (await ctx.joinAll(tasks)).map(({ status }) => status);
    },
  };
  const run = await world.runtime.submit(lead, null, { spawnBudget: { maxAgents: 2, allowPreempt: true } });
  const pid = await pidIn(world);
  hurry.resolve();
  await eventOf(run, "seat_pause");
  expect(await isAlive(pid)).toBe(true);
  await writeFile(join(world.folder, "go"), "");
  return { world, run, pid, ended };
}

/** What the log of a preempted run says about seats. */
async function seatsOf(run: RunHandle<unknown>): Promise<readonly string[]> {
  return (await eventsOf(run)).map(({ type }) => type).filter((type) => type.startsWith("seat_"));
}

const preemption = ["seat_yield", "seat_pause", "seat_grant", "seat_recall"];

test("H2: a hired agent that loses its seat between two requests works on in its process if it is recalled within 60 s", async () => {
  const { world, run, pid, ended } = await preempted(new FakeClock());
  ended.resolve();
  expect((await run.result()).output).toEqual(["completed", "completed"]);
  expect(await seatsOf(run)).toEqual(preemption);
  expect(await hiredEvents(run)).toEqual(["session_opened"]);
  expect(await readFile(join(world.folder, "ran.txt"), "utf8")).toBe(`${pid}\n`);
  expect(world.upstream.received).toHaveLength(2);
});

test("H2: a hired agent without a seat for 60 s ends its turn, and continues its session after the recall without a second prompt", async () => {
  const clock = new FakeClock();
  const { world, run, pid, ended } = await preempted(clock);
  await untilEnded(pid, clock);
  expect(world.upstream.received).toHaveLength(1);
  ended.resolve();
  expect((await run.result()).output).toEqual(["completed", "completed"]);
  expect(await seatsOf(run)).toEqual(preemption);
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
  expect(await readFile(join(world.folder, "ran.txt"), "utf8")).toBe(`${pid}\n`);
  expect(world.upstream.received).toHaveLength(2);
  expect(JSON.stringify(world.upstream.bodies[1]).split("Work.")).toHaveLength(2);
});

/** The command of a demo agent that writes its process id to a file. */
const noted = ["/bin/sh", "-c", 'echo $$ >> pid.txt; exec "$0" "$@"', ...agentFile("demo-process")];

/** Returns the process id that the demo agent has written. */
function notedPid({ folder }: HireWorld): Promise<number> {
  return poll(async () => Number.parseInt(await readFile(join(folder, "pid.txt"), "utf8"), 10));
}

const write = { run: "echo x >> ran.txt" };

test("a hired agent whose run is paused asks no question, ends its turn after 60 s, and asks once the run is resumed", async () => {
  const clock = new FakeClock();
  const paused = Promise.withResolvers<void>();
  const answers = scripted([write, write, { say: "Done." }]);
  const world = await hireWorld(
    async (received, response) => {
      await paused.promise;
      await answers(received, response);
    },
    { clock },
  );
  const run = await world.runtime.submit(world.hire({ command: noted }), "Work.");
  await poll(async () => world.upstream.received.length > 0);
  await run.pause();
  paused.resolve();
  await eventOf(run, "run_pause");
  await untilEnded(await notedPid(world), clock);
  expect((await eventsOf(run)).some(({ type }) => type === "approval_request")).toBe(false);
  await run.resume();
  const { approvalId } = await eventOf(run, "approval_request");
  await run.approve(approvalId, { decision: "approved" });
  expect((await run.result()).output).toBe("Done.");
  expect(await readFile(join(world.folder, "ran.txt"), "utf8")).toBe("x\n");
  expect(await hiredEvents(run)).toEqual(["session_opened", "session_loaded", "prompt_continued"]);
});

/** A hired agent whose question is answered while its run is paused. */
async function answeredInPause(turns: readonly Turn[], clock: FakeClock) {
  const world = await hireWorld(turns, { clock });
  const run = await world.runtime.submit(world.hire({ command: noted }), "Work.");
  const { approvalId } = await eventOf(run, "approval_request");
  await run.pause();
  await eventOf(run, "run_pause");
  await run.approve(approvalId, { decision: "approved" });
  return { world, run };
}

/** What the log says of the question, and the commands that ran. */
async function outcomeOf(world: HireWorld, run: RunHandle) {
  const { output } = await run.result();
  const types = (await eventsOf(run)).map(({ type }) => type);
  const ran = await readFile(join(world.folder, "ran.txt"), "utf8");
  const order = types.filter((type) => type.startsWith("approval_") || type === "run_resume");
  return { output, order, ran, hired: await hiredEvents(run) };
}

const answered = {
  output: "Done.",
  order: ["approval_request", "run_resume", "approval_decision"],
  ran: "x\n",
};

test("the answer to a question of a hired agent in a paused run reaches it if the run is resumed within 60 s", async () => {
  const { world, run } = await answeredInPause([write, { say: "Done." }], new FakeClock());
  await run.resume();
  expect(await outcomeOf(world, run)).toEqual({ ...answered, hired: ["session_opened"] });
});

test("an answer to a hired agent in a run that stays paused for 60 s ends its turn, and applies when it asks again", async () => {
  const clock = new FakeClock();
  const { world, run } = await answeredInPause([write, write, { say: "Done." }], clock);
  await untilEnded(await notedPid(world), clock);
  await run.resume();
  expect(await outcomeOf(world, run)).toEqual({
    ...answered,
    hired: ["session_opened", "session_loaded", "prompt_continued"],
  });
});

test.for([
  ["cancelled", (run: RunHandle) => run.cancel("enough")],
  ["deadline_exceeded", (_run: RunHandle, clock: FakeClock) => clock.advance(20_001)],
] as const)(
  "a run that ends as %s during an answer closes the provider's request and ends the processes of its hired agent",
  async ([status, end]) => {
    const clock = new FakeClock();
    const closed = Promise.withResolvers<void>();
    const world = await hireWorld(
      (_received, response) => {
        response.on("close", closed.resolve);
        response.writeHead(200, { "content-type": "application/json" }).write('{"content":[');
      },
      { clock },
    );
    const agent = world.hire({ command: noted, budget: { deadlineMs: 20_000 } });
    const run = await world.runtime.submit(agent, "Work.");
    await poll(async () => world.upstream.received.length > 0);
    const pid = await notedPid(world);
    await end(run, clock);
    await closed.promise;
    expect((await run.result()).status).toBe(status);
    expect(await isAlive(pid)).toBe(false);
    expect(await endedGroup(pid)).toBe(true);
  },
);

/** Whether a process group has no member any more. */
async function endedGroup(pid: number): Promise<boolean> {
  try {
    process.kill(-pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}

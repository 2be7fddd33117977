import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { HiredArchitecture } from "../../src/capabilities/hire/hired-architecture.ts";
import { Sandbox } from "../../src/capabilities/sandbox/sandbox.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { agentCode, ready } from "./agent-file.ts";
import { hireWorld, isAlive, poll, type HireWorld } from "./hire-world.ts";

/** An agent that answers no prompt, ignores a cancel and SIGTERM, and writes down what it receives. */
const stubborn = agentCode(
  `${ready} else if (method === "session/new") send({ id, result: { sessionId: "s" } }); else note(method + " " + process.pid); }`,
  `const note = (text) => require("node:fs").appendFileSync("notes.txt", text + "\\n");
   process.on("SIGTERM", () => note("SIGTERM"));
   const left = require("node:child_process").spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
   require("node:fs").writeFileSync("left.txt", String(left.pid));
   setInterval(() => undefined, 60_000)`,
);

/** Polls the notes of the stubborn agent until they contain a text. Returns the process of the agent. */
async function noted(folder: string, text: string): Promise<number> {
  const notes = await poll(async () => {
    const all = await readFile(join(folder, "notes.txt"), "utf8");
    return all.includes(text) ? all : "";
  });
  return Number(/session\/prompt (\d+)/u.exec(notes)?.[1]);
}

/** A stubborn agent whose waiting times follow the given clock. */
function stubbornAgent({ gateway, folder }: HireWorld, clock: FakeClock): Agent {
  return new Agent({
    name: "coder",
    description: "Codes",
    architecture: new HiredArchitecture({
      name: "coder",
      command: [process.execPath, ...stubborn.slice(1)],
      gateway,
      folder,
      env: {},
      inheritEnv: [],
      home: "private",
      sandbox: new Sandbox({ mode: "off" }),
      idleMs: 3_600_000,
      startTimeoutMs: 60_000,
      clock,
    }),
  });
}

test("a cancelled hired agent gets session/cancel, after 5 s SIGTERM, and after 5 s more SIGKILL", async () => {
  const clock = new FakeClock();
  const world = await hireWorld([], { stopGraceMs: 600_000 });
  const run = await world.runtime.submit(stubbornAgent(world, clock), "Work.");
  const pid = await noted(world.folder, "session/prompt");
  await run.cancel("enough");
  await noted(world.folder, "session/cancel");
  await clock.advance(4_999);
  expect(await readFile(join(world.folder, "notes.txt"), "utf8")).not.toContain("SIGTERM");
  await clock.advance(1);
  await noted(world.folder, "SIGTERM");
  await clock.advance(4_999);
  expect(await isAlive(pid)).toBe(true);
  await clock.advance(1);
  expect((await run.result()).status).toBe("cancelled");
  expect(await isAlive(pid)).toBe(false);
});

test("a cancelled hired agent gets SIGKILL after 9 s by default, and the run ends after its processes, also detached ones", async () => {
  const clock = new FakeClock();
  const world = await hireWorld([], { clock });
  const run = await world.runtime.submit(stubbornAgent(world, clock), "Work.");
  const pid = await noted(world.folder, "session/prompt");
  const left = Number(await readFile(join(world.folder, "left.txt"), "utf8"));
  await run.cancel("enough");
  await noted(world.folder, "session/cancel");
  await clock.advance(5_000);
  await noted(world.folder, "SIGTERM");
  await clock.advance(3_500);
  expect(await isAlive(pid)).toBe(true);
  await expect
    .poll(async () => {
      await clock.advance(100);
      return isAlive(pid);
    })
    .toBe(false);
  expect((await run.result()).status).toBe("cancelled");
  expect([await isAlive(pid), await isAlive(left)]).toEqual([false, false]);
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { permissions } from "../../src/agents/index.ts";
import { openCrashStore } from "../crash/crash-store.ts";
import { agentFile } from "./agent-file.ts";
import { afterTest, eventsOf, found, hiredEvents, hireWorld, poll, tempFolder } from "./hire-world.ts";

/**
 * Starts a process of the machine build-1, kills it in the middle of the command of its hired agent, and then starts
 * workers of the machines build-2 and build-1 on the same store. Returns what the run waits for before build-1 has a
 * worker, how the run ends with one, and how many attempts it had.
 */
export async function killedOnItsMachine() {
  const file = join(await tempFolder(), "reeve.db");
  const world = await hireWorld([{ run: "echo x >> ran.txt; sleep 300" }, { say: "Done." }], {
    store: await openCrashStore(file),
    host: "build-2",
  });
  const prompt = "Run it.";
  const [program = "", ...args] = agentFile(
    "owner-process",
    file,
    world.upstream.url,
    world.folder,
    prompt,
    JSON.stringify("off"),
    "build-1",
  );
  const owner = spawn(program, args, { stdio: "inherit" });
  afterTest(async () => owner.kill("SIGKILL"));
  const ran = join(world.folder, "ran.txt");
  await poll(async () => readFile(ran, "utf8"));
  owner.kill("SIGKILL");
  await once(owner, "exit");

  const agent = world.hire({ permissions: permissions({ mode: "bypass" }) });
  world.runtime.register(agent);
  const run = await found(world.runtime, "run_killed");
  const shown = async () => {
    const { status, waitsFor, host } = await run.summary();
    return { status, waitsFor, host };
  };
  const isLeft = async (): Promise<boolean> => (await run.summary()).status === "pending";
  await expect.poll(isLeft).toBe(true);
  const elsewhere = await shown();

  const there = await world.reopen({ store: await openCrashStore(file), host: "build-1" });
  there.register(agent);
  const { status, output } = await run.result();
  const attempts = (await eventsOf(run)).filter(({ type }) => type === "attempt_start").length;
  return {
    elsewhere,
    end: { status, output, attempts },
    ran: await readFile(ran, "utf8"),
    hired: await hiredEvents(run),
  };
}

/** What `killedOnItsMachine` returns if the run has continued on its machine only. */
export const onItsMachine = {
  elsewhere: { status: "pending", waitsFor: ["host"], host: "build-1" },
  end: { status: "completed", output: "Done.", attempts: 2 },
  ran: "x\n",
  hired: ["session_opened", "session_loaded", "prompt_continued"],
};

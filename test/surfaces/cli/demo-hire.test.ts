import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, inject, onTestFinished, test } from "vitest";
import { parseRunId, type Event } from "../../../src/kernel/index.ts";
import { openStore } from "../../../src/runtime/index.ts";
import { main, reeveProcess, type Said } from "./reeve-process.ts";

const bubblewrap = inject("bubblewrap");

/** A folder that is deleted after the test. */
async function tempFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-hire-demo-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return folder;
}

/** Plays the demo and keeps its files until the test ends. */
async function play(
  env: Readonly<Record<string, string>> = {},
): Promise<Said & { readonly folder: string; readonly cwd: string }> {
  const cwd = await tempFolder();
  // The user's own folder, into which the demo must not write.
  const home = join(cwd, "home");
  const said = await reeveProcess(["demo", "--hire", "--pace", "30", "--keep"], {
    cwd,
    env: { REEVE_HOME: home, ...env },
  });
  expect(existsSync(home)).toBe(false);
  const folder = /sqlite:(.+)\/reeve\.db/u.exec(said.out.join("\n"))?.[1] ?? "";
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  return { ...said, folder, cwd };
}

async function eventsIn(folder: string): Promise<readonly Event[]> {
  const store = await openStore(`sqlite:${join(folder, "reeve.db")}`);
  try {
    const events: Event[] = [];
    for await (const event of store.events.read(parseRunId("run_hire"))) events.push(event);
    return events;
  } finally {
    await store.close();
  }
}

/** A folder with links to all programs of the PATH except one. */
async function pathWithout(missing: string): Promise<string> {
  const folder = join(await tempFolder(), "bin");
  await mkdir(folder);
  for (const each of (process.env["PATH"] ?? "").split(":").filter(existsSync))
    for (const name of await readdir(each))
      if (name !== missing && !existsSync(join(folder, name)))
        await symlink(join(each, name), join(folder, name)).catch((error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") throw error;
        });
  return folder;
}

/** The lines that the demo prints in any case, in this order. */
const story = [
  "lead           hires coder, writer",
  "coder          waits for you: shell sed",
  "ada            approves shell sed",
  "coder          runs node test/tally.test.js: all 6 pass",
  "coder          reports: 1 rounding error repaired, all tests pass.",
  "lead           waits for you: merge_worktrees coder, writer",
  "+## 0.9.0",
  "ada            approves merge_worktrees coder, writer",
  "lead           merges CHANGELOG.md, docs/api.md, src/round.js into main",
  "lead           is done",
  "The ledger, from the event log",
  "The provider of the employees received 9 requests",
  "The checkout has the work of both",
  "Next",
];

test.skipIf("problem" in bubblewrap)(
  "reeve demo --hire shows two hired agents in worktrees, and merges their work after an approval (skipped without bubblewrap)",
  async () => {
    const { code, out, talk, folder, cwd } = await play();
    const text = out.join("\n");
    expect(code === 0 || talk).toBe(true);
    expect(out[0]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/runs\/run_hire$/u);
    const inOrder = story.map((words) => text.indexOf(words));
    expect(inOrder).not.toContain(-1);
    expect(inOrder).toEqual(inOrder.toSorted((one, other) => one - other));
    expect(text).toContain("coder          runs node test/tally.test.js: 1 of 6 fails");
    expect(text).toContain("has changed docs/api.md as well");
    expect(text).toContain(
      "each employee writes only its worktree and its home, and reaches only the gateway",
    );

    // What the employees were charged is in the ledger, below the one budget.
    const events = await eventsIn(folder);
    const spentBy = (agent: string): number =>
      events
        .filter(({ type, agentId }) => type === "metered_call" && agentId === agent)
        .reduce((sum, { data }) => sum + ((data as Event<"metered_call">["data"]).usage?.costUsd ?? 0), 0);
    for (const agent of ["coder", "writer"]) {
      expect(spentBy(agent)).toBeGreaterThan(0);
      expect(out.find((line) => line.startsWith(`    ${agent} `))).toContain(`$${spentBy(agent).toFixed(6)}`);
    }
    const end = events.find((event): event is Event<"run_end"> => event.type === "run_end");
    expect(out.find((line) => line.startsWith("  total "))).toContain(`$${end?.data.costUsd?.toFixed(6)}`);
    expect(end?.data.costUsd).toBeLessThan(0.5);

    expect(await readFile(join(folder, "tally/CHANGELOG.md"), "utf8")).toContain("## 0.9.0");
    expect(await readFile(join(folder, "tally/src/round.js"), "utf8")).toContain("e-2");
    expect(await readdir(join(folder, "reeve-home/homes"))).toHaveLength(2);
    const guide = out.find((line) => line.endsWith("docs/guides/hire.md")) ?? "";
    expect(await readFile(join(cwd, guide.trim()), "utf8")).toContain("# Hired agents");
  },
);

test("reeve demo --hire says that its agents run without a sandbox where bubblewrap is missing, and otherwise ends the same", async () => {
  const { code, out, talk } = await play({ PATH: await pathWithout("bwrap") });
  const text = out.join(" ").replaceAll(/ +/gu, " ");
  expect(code === 0 || talk).toBe(true);
  expect(text).toContain("NO SANDBOX: the program bwrap is not installed");
  expect(text).toContain("The employees of this demo run with your permissions");
  expect(text).toContain('Agents that you hire are refused here unless you set sandbox: "off".');
  expect(text).toContain("The checkout has the work of both");
});

test("reeve demo --hire names git if git is missing, and leaves no files behind", async () => {
  const temp = await tempFolder();
  const { code, talk } = await reeveProcess(["demo", "--hire"], {
    env: { PATH: await pathWithout("git"), TMPDIR: temp },
  });
  expect([code, talk]).toEqual([7, expect.stringContaining("install git 2.38 or newer")]);
  expect(await readdir(temp)).toEqual([]);
});

test("reeve demo --hire ends its agents and deletes its files when it gets SIGINT in the middle", async () => {
  const temp = await tempFolder();
  const child = spawn(process.execPath, [main, "demo", "--hire", "--pace", "30000"], {
    env: { ...process.env, TMPDIR: temp },
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const closed = once(child, "close");
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.includes("hires coder")) continue;
    child.kill("SIGINT");
    break;
  }
  child.stdout.resume();
  expect(await closed).toEqual([0, null]);
  expect(await readdir(temp)).toEqual([]);
});

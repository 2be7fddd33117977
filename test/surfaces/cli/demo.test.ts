import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../src/runtime/index.ts";
import { parseRunId, type Event } from "../../../src/kernel/index.ts";
import { main, reeve, reeveProcess } from "./reeve-process.ts";

interface Demo {
  readonly child: ChildProcess;
  /** Lines of stdout so far. */
  readonly lines: readonly string[];
  /** Resolves with the first line that contains a text. */
  readonly line: (text: string) => Promise<string>;
}

/** Starts the demo with a short pace. */
function startDemo(...args: string[]): Demo {
  const child = spawn(process.execPath, [main, "demo", "--pace", "60", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => lines.push(line));
  return {
    child,
    lines,
    line: async (text) => {
      for (;;) {
        const found = lines.find((line) => line.includes(text));
        if (found !== undefined) return found;
        await once(reader, "line");
      }
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** The process ids of the workers, as the demo prints them. */
function workersIn(text: string): readonly number[] {
  return [...text.matchAll(/worker-[ab] \((\d+)\)/gu)].map(([, pid]) => Number(pid));
}

async function eventsIn(path: string): Promise<readonly Event[]> {
  const store = await openStore(`sqlite:${path}`);
  try {
    const events: Event[] = [];
    for await (const event of store.events.read(parseRunId("run_release-0-9"))) events.push(event);
    return events;
  } finally {
    await store.close();
  }
}

function ofType<Type extends Event["type"]>(events: readonly Event[], type: Type): readonly Event<Type>[] {
  return events.filter((event): event is Event<Type> => event.type === type);
}

describe("reeve demo", () => {
  test("reeve demo without a terminal prints the address first, says what the store contains, and ends with 0", async () => {
    const cwd = await mkdtemp(join(tmpdir(), "reeve-demo-cwd-"));
    onTestFinished(() => rm(cwd, { recursive: true, force: true, maxRetries: 10 }));
    const { code, out, talk } = await reeveProcess(["demo", "--pace", "60", "--keep"], { cwd });
    const text = out.join("\n");
    const folder = /sqlite:(.+)\/reeve\.db/u.exec(text)?.[1] ?? "";
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    // The package of the tests contains no page.
    const notice = "The page is not built; run npm run build:page in the checkout.\n";
    expect({ code, talk }).toEqual({ code: 0, talk: notice });
    expect(out[0]).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/runs\/run_release-0-9$/u);

    const inOrder = [
      "lead           hires research, build, review",
      "packages       wants licence (HIGH); all 9 seats are taken",
      "size           gives its seat to licence",
      "size           is called back and continues from its journal",
      "lead           stops at its budget",
      "ada            tops up $0.30",
      "changelog      writes CHANGELOG.md",
      "kill -9",
      "steps replayed free",
      "lead           is done",
      "The ledger, from the event log",
      "No answer was paid for twice.",
      "Next",
    ].map((words) => text.indexOf(words));
    expect(inOrder).not.toContain(-1);
    expect(inOrder).toEqual(inOrder.toSorted((one, other) => one - other));
    expect(text).toContain("ada            approves edit src/round.js");

    const events = await eventsIn(join(folder, "reeve.db"));
    const recoveries = ofType(events, "run_recover").filter(({ data }) => data.recoveries !== undefined);
    expect(recoveries).toHaveLength(1);
    expect(ofType(events, "approval_decision").map(({ data }) => data.decision)).toEqual([
      { decision: "approved", by: "ada" },
    ]);
    expect(ofType(events, "budget_top_up").map(({ data }) => data)).toMatchObject([
      { by: "ada", add: { maxCostUsd: 0.3 } },
    ]);

    const charges = [
      ...ofType(events, "message_end").map(({ data }) => data.usage?.costUsd ?? 0),
      ...ofType(events, "budget_lost").map(({ data }) => data.costUsd ?? 0),
    ];
    const spentUsd = charges.reduce((sum, usd) => sum + usd, 0);
    const total = out.find((line) => line.startsWith("  total")) ?? "";
    expect(total).toContain(`$${spentUsd.toFixed(6)}`);
    expect(ofType(events, "run_end").at(-1)?.data).toMatchObject({ status: "completed" });
    expect(ofType(events, "run_end").at(-1)?.data.costUsd).toBeCloseTo(spentUsd, 9);

    // The killed worker had written the file. No other worker wrote it again.
    const written = ofType(events, "tool_execution_start").filter(({ data }) => data.toolName === "write");
    expect(written).toHaveLength(1);
    const changelog = await readFile(join(folder, "tally/CHANGELOG.md"), "utf8");
    expect(changelog.match(/## 0\.9\.0/gu)).toHaveLength(1);
    expect(await readFile(join(folder, "tally/package.json"), "utf8")).toContain('"version": "0.9.0"');

    const source = await readdir(join(folder, "tally/src"));
    expect(text).toContain(`reports: Fit to ship: 2 packages, 2 advisories, ${source.length} files.`);

    const guide = out.find((line) => line.endsWith("getting-started.md")) ?? "";
    expect(await readFile(join(cwd, guide.trim()), "utf8")).toContain("# The first ten minutes");

    const workers = workersIn(text);
    const killed = Number(/kill -9 (\d+)/u.exec(text)?.[1]);
    expect(workers).toHaveLength(2);
    expect(workers).toContain(killed);
    expect(workers.filter(isAlive)).toEqual([]);
  });

  test("reeve demo --stay serves finished runs, a question, a tree and a schedule until SIGINT, and leaves no files behind", async () => {
    const { child, lines, line } = startDemo("--stay");
    const url = await line("http://");
    await line("Next");
    const folder = /the files in (.+)\/tally/u.exec(lines.join(" "))?.[1] ?? "";
    const read = async (path: string): Promise<unknown> => (await fetch(new URL(`/api/${path}`, url))).json();
    const { runs } = (await read("runs")) as { runs: { status: string }[] };
    const statuses = runs.map(({ status }) => status);
    expect(statuses.filter((status) => status === "completed").length).toBeGreaterThan(2);
    expect(statuses).toContain("waiting");
    expect(statuses).toContain("budget_exhausted");
    expect(await read("approvals")).toMatchObject({
      approvals: [{ toolName: "ask_human", agentId: "support" }],
    });
    expect(await read("schedules")).toMatchObject({ schedules: [{ name: "weekly-report" }] });
    const { nodes } = (await read("sessions/order-8841/tree")) as { nodes: { children: string[] }[] };
    expect(nodes.some(({ children }) => children.length > 1)).toBe(true);
    const fork = await fetch(new URL("/api/runs/run_release-0-9/fork", url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ at: 7, model: "demo/small" }),
    });
    expect([fork.status, await fork.text()]).toEqual([201, expect.stringContaining("run_")]);
    const workers = workersIn(lines.join("\n"));
    expect(workers.filter(isAlive)).toHaveLength(1);
    expect(existsSync(folder)).toBe(true);

    const closed = once(child, "close");
    child.kill("SIGINT");
    expect(await closed).toEqual([0, null]);
    expect(workers.filter(isAlive)).toEqual([]);
    expect(existsSync(folder)).toBe(false);
    await expect(fetch(url)).rejects.toThrow("fetch failed");
  });

  test.for(["SIGTERM", "SIGKILL"] as const)(
    "the workers of reeve demo end when it gets %s in the middle",
    async (signal) => {
      const { child, lines, line } = startDemo("--exit");
      await line("hires research");
      // The workers hold the pipe of stderr, so that `close` comes after their end.
      const closed = once(child, "close");
      child.kill(signal);
      expect(await closed).toEqual(signal === "SIGTERM" ? [0, null] : [null, "SIGKILL"]);
      expect(workersIn(lines.join("\n"))).toHaveLength(2);
      const folder = /the files in (.+)\/tally/u.exec(lines.join(" "))?.[1] ?? "";
      expect(existsSync(folder)).toBe(signal === "SIGKILL");
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    },
  );

  test.for([
    [["--pace", "slow"], "invalid --pace slow: expected milliseconds from 0"],
    [["--port", "70000"], "invalid --port 70000: expected an integer from 0 to 65535"],
    [["--stay", "--exit"], "--stay cannot be combined with --exit"],
    [["--stai"], "Did you mean --stay?"],
    [["--act", "folder"], "--act is for processes that reeve demo starts; use reeve demo"],
  ] as const)("reeve demo %j is refused: %s", async ([args, message]) => {
    // A process that Vitest starts has a channel to its parent, as a worker of the demo has.
    const run = args[0] === "--act" ? reeveProcess : reeve;
    const { code, talk } = await run(["demo", ...args]);
    expect(code).toBe(2);
    expect(talk).toContain(message);
  });

  test("reeve demo names a port that is in use, and a temporary folder that cannot be written", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const busy = await reeveProcess(["demo", "--port", String(port)]);
    expect([busy.code, busy.talk]).toEqual([
      2,
      `reeve: cannot listen at 127.0.0.1:${port}: the port is in use; choose another one\n`,
    ]);

    const folder = await mkdtemp(join(tmpdir(), "reeve-no-folder-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    const file = join(folder, "file");
    await writeFile(file, "");
    const unwritable = await reeveProcess(["demo"], { env: { TMPDIR: file } });
    expect(unwritable.code).toBe(4);
    expect(unwritable.talk).toContain(`no folder can be created in ${file}`);
    expect(unwritable.talk).toContain("set TMPDIR to a folder that can be written");
  });
});

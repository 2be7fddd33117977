import { existsSync } from "node:fs";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bashTool, type BashToolOptions } from "../../../src/capabilities/tools/index.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

async function bash(options: Partial<BashToolOptions> = {}) {
  const root = await tempFolder();
  return { root, tool: bashTool({ root, sandbox: "off", ...options }) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie process counts as dead, even if its parent has not waited for it yet.
    return !/^State:\s+Z/mu.test(statusOf(pid));
  } catch {
    return false;
  }
}

function statusOf(pid: number): string {
  const path = `/proc/${pid}/status`;
  return existsSync(path) ? process.getBuiltinModule("node:fs").readFileSync(path, "utf8") : "";
}

async function untilDead(pid: number): Promise<void> {
  while (isAlive(pid))
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
}

describe("bash", () => {
  test("bash returns the output of stdout and stderr, the exit code and metadata", async () => {
    const { tool } = await bash();
    const result = await callTool(tool, { command: "echo out; echo err >&2; exit 3" });
    expect(result.isError).toBe(true);
    expect(textOf(result).split("\n").toSorted()).toEqual(["[exit code 3]", "err", "out"]);
    expect(result.metadata).toMatchObject({
      command: "echo out; echo err >&2; exit 3",
      cwd: ".",
      exitCode: 3,
      killedBy: null,
      isTimedOut: false,
      outputBytes: 8,
      cutBytes: 0,
      sandbox: { mode: "off", applied: "none", network: true },
    });
    expect(textOf(await callTool(tool, { command: "true" }))).toBe("[no output]");
    expect(textOf(await callTool(tool, { command: "kill -9 $$" }))).toBe("[killed by SIGKILL]");
    expect(textOf(await callTool(tool, { command: "printf 'grüße 🦊'" }))).toBe("grüße 🦊");
  });

  test("bash has the risk critical without an enforced sandbox, high with one, and is destructive in any case", async () => {
    const stamps = async (sandbox: BashToolOptions["sandbox"] & string) => {
      const { tool } = await bash({ sandbox });
      return [tool.risk, tool.destructive, tool.edits, tool.concurrency];
    };
    expect(await stamps("off")).toEqual(["critical", true, false, "sequential"]);
    expect(await stamps("warn")).toEqual(["critical", true, false, "sequential"]);
    expect(await stamps("enforce")).toEqual(["high", true, false, "sequential"]);
  });

  test("bash starts commands only inside the root", async () => {
    const { root, tool } = await bash();
    await mkdir(join(root, "sub dir"));
    await symlink("/", join(root, "out"));
    await symlink("sub dir", join(root, "in"));
    await writeFile(join(root, "file"), "");
    expect(textOf(await callTool(tool, { command: "pwd", cwd: "sub dir" }))).toBe(join(root, "sub dir"));
    expect(textOf(await callTool(tool, { command: "pwd", cwd: "in" }))).toBe(join(root, "sub dir"));
    for (const cwd of ["..", "out", "/", "/etc", "in/../.."])
      expect(textOf(await callTool(tool, { command: "pwd", cwd }))).toContain("outside the workspace");
    expect(textOf(await callTool(tool, { command: "pwd", cwd: "file" }))).toContain("not a folder");
    expect(textOf(await callTool(tool, { command: "pwd", cwd: "nope" }))).toBe("nope does not exist");
    expect(textOf(await callTool(tool, { command: "a\0b" }))).toContain("zero byte");
  });

  test("bash passes harmless variables, inherited variables, given variables and the idempotency key to a command", async () => {
    process.env["REEVE_TEST_SECRET"] = "hush";
    process.env["REEVE_TEST_NAMED"] = "named";
    const { tool } = await bash({ inheritEnv: ["REEVE_TEST_NAMED"], env: { GIVEN: "given" } });
    const text = textOf(await callTool(tool, { command: "env" }));
    delete process.env["REEVE_TEST_SECRET"];
    delete process.env["REEVE_TEST_NAMED"];
    expect(text).not.toContain("hush");
    expect(text).toContain("REEVE_TEST_NAMED=named");
    expect(text).toContain("GIVEN=given");
    expect(text).toContain("REEVE_IDEMPOTENCY_KEY=run/task/1");
    expect(text).toMatch(/^PATH=/m);
  });

  test("bash keeps the start and the end of long output", async () => {
    const { tool } = await bash({ maxOutputBytes: 1_000 });
    const result = await callTool(tool, {
      command: "echo first; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo last",
    });
    const text = textOf(result);
    expect(text).toMatch(/^first\nx+\n\[\d+ bytes cut\]\nx+\nlast$/);
    expect(text.length).toBeLessThan(1_100);
    expect(result.metadata).toMatchObject({ outputBytes: 30_000_012, cutBytes: 29_999_012 });
    const wide = await callTool(tool, { command: "for i in $(seq 2000); do printf 🦊; done" });
    expect(textOf(wide)).toMatch(/^(?:🦊)+\n\[\d+ bytes cut\]\n(?:🦊)+$/u);
  });

  test("bash stops a command that takes too long together with its children, even if they ignore SIGTERM", async () => {
    const { root, tool } = await bash({ graceMs: 20 });
    const command = `trap '' TERM; (trap '' TERM; echo $BASHPID > child; while :; do read -t 9 <> <(:); done) & echo begun; wait; while :; do read -t 9 <> <(:); done`;
    const result = await callTool(tool, { command, timeoutMs: 2_000 });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toBe("begun\n[stopped: the command took longer than 2000 ms]");
    expect(result.metadata).toMatchObject({ isTimedOut: true, killedBy: "SIGKILL" });
    await untilDead(Number(await readFile(join(root, "child"), "utf8")));
  });

  test("bash ends the background processes of a command with it", async () => {
    const { tool } = await bash();
    const result = await callTool(tool, { command: "sleep 600 & echo $!" });
    expect(result.isError).toBe(false);
    await untilDead(Number(textOf(result)));
  });

  test("bash stops the command when the call is cancelled", async () => {
    const { root, tool } = await bash({ graceMs: 20 });
    const stop = new AbortController();
    const calling = callTool(tool, { command: "echo $$ > pid; sleep 600" }, { signal: stop.signal });
    while (!existsSync(join(root, "pid")) || (await readFile(join(root, "pid"), "utf8")) === "")
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    stop.abort(new Error("enough"));
    expect(textOf(await calling)).toBe("enough");
    await untilDead(Number(await readFile(join(root, "pid"), "utf8")));
  });
});

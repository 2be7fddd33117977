import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bashTool } from "../../../src/capabilities/tools/index.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

/** The variable REEVE_BWRAP selects another bubblewrap than the one in the PATH. */
const program = process.env["REEVE_BWRAP"] ?? "bwrap";
const works =
  spawnSync(program, ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"])
    .status === 0;

/** Creates a stand-in for bubblewrap that records its arguments and runs the command after them. */
async function standIn(folder: string): Promise<string> {
  const path = join(folder, "fake-bwrap");
  await writeFile(
    path,
    `#!/bin/bash\nprintf '%s\\n' "$@" > '${folder}/arguments'\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n`,
  );
  await chmod(path, 0o755);
  return path;
}

/** Returns the processes whose working directory is this folder. */
function workersIn(folder: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      // The process ended meanwhile.
      return false;
    }
  });
}

describe("bash without bubblewrap", () => {
  const missing = "reeve-no-such-program";

  test("runs nothing in the mode enforce and says what to install", async () => {
    const root = await tempFolder();
    const tool = bashTool({ root, sandbox: { mode: "enforce", program: missing } });
    const result = await callTool(tool, { command: "touch ran" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(
      /^the command was not run, because the sandbox is enforced: the program reeve-no-such-program is not installed: install bubblewrap \(/,
    );
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("runs nothing in the mode enforce if the program is installed but does not work", async () => {
    const root = await tempFolder();
    const broken = join(root, "broken");
    await writeFile(broken, "#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n");
    await chmod(broken, 0o755);
    const result = await callTool(bashTool({ root, sandbox: { mode: "enforce", program: broken } }), {
      command: "touch ran",
    });
    expect(textOf(result)).toContain("does not work: setting up uid map: Permission denied");
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("runs the command in the mode warn, and says in the result and the metadata that there is no sandbox", async () => {
    const tool = bashTool({ root: await tempFolder(), sandbox: { mode: "warn", program: missing } });
    const result = await callTool(tool, { command: "echo hi" });
    expect(result.isError).toBe(false);
    expect(textOf(result)).toMatch(
      /^hi\n\[run without a sandbox: the program reeve-no-such-program is not installed/,
    );
    expect(result.metadata?.["sandbox"]).toMatchObject({
      mode: "warn",
      applied: "none",
      network: true,
      warning: expect.stringContaining("install bubblewrap"),
    });
  });

  test("refuses an unknown mode", async () => {
    const root = await tempFolder();
    expect(() => bashTool({ root, sandbox: "strict" as "warn" })).toThrow("use one of off, warn, enforce");
  });
});

test("bubblewrap gets a read-only system, a writable workspace, no network and only the given environment", async () => {
  const folder = await tempFolder();
  const root = join(folder, "work");
  await mkdir(join(root, "sub"), { recursive: true });
  const sandbox = { mode: "enforce", program: await standIn(folder), readable: ["/srv"] } as const;
  const result = await callTool(bashTool({ root, sandbox }), { command: "pwd", cwd: "sub" });
  expect(textOf(result)).toBe(join(root, "sub"));
  expect(result.metadata?.["sandbox"]).toEqual({ mode: "enforce", applied: "bubblewrap", network: false });
  const told = (await readFile(join(folder, "arguments"), "utf8")).replaceAll("\n", " ");
  expect(told).toMatch(/^--unshare-all --die-with-parent --new-session --ro-bind-try \/usr \/usr /);
  expect(told).not.toContain("--share-net");
  expect(told).toContain(`--tmpfs /tmp --ro-bind /srv /srv --bind ${root} ${root} --clearenv --setenv `);
  expect(told).toContain(`--chdir ${join(root, "sub")} -- /bin/`);
  const open = await callTool(bashTool({ root, sandbox: { ...sandbox, network: true } }), {
    command: "true",
  });
  expect(open.metadata?.["sandbox"]).toMatchObject({ network: true });
  expect(await readFile(join(folder, "arguments"), "utf8")).toContain("--share-net");
});

describe.skipIf(!works)("bash with bubblewrap (skipped if the program is missing or may not work)", () => {
  test("can read the system and write only the workspace", async () => {
    const root = await tempFolder();
    const tool = bashTool({ root, sandbox: { mode: "enforce", program } });
    const result = await callTool(tool, {
      command: `echo mine > file && cat file; ls ${homedir()} 2>&1; touch /usr/x 2>&1; touch /etc/x 2>&1; true`,
    });
    const text = textOf(result);
    expect(text).toMatch(/^mine\n/);
    expect(text).toMatch(/No such file or directory/);
    expect(text.match(/Read-only file system/g)).toHaveLength(2);
    expect(await readFile(join(root, "file"), "utf8")).toBe("mine\n");
    expect(result.metadata?.["sandbox"]).toEqual({
      mode: "enforce",
      applied: "bubblewrap",
      network: false,
    });
  });

  test("cannot reach the network, not even this machine, unless the policy allows it", async () => {
    const server = createServer((socket) => socket.end("hello"));
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const root = await tempFolder();
    const command = `cat < /dev/tcp/127.0.0.1/${port}`;
    const closed = await callTool(bashTool({ root, sandbox: { mode: "enforce", program } }), { command });
    expect(closed.isError).toBe(true);
    expect(textOf(closed)).not.toContain("hello");
    const open = await callTool(bashTool({ root, sandbox: { mode: "enforce", network: true, program } }), {
      command,
    });
    expect(textOf(open)).toBe("hello");
  });

  test("ends processes that left the process group, too", async () => {
    const root = await tempFolder();
    const tool = bashTool({ root, sandbox: { mode: "enforce", program }, graceMs: 20 });
    const command = "setsid bash -c 'trap \"\" TERM; touch begun; while :; do sleep 1; done' & wait";
    const result = await callTool(tool, { command, timeoutMs: 2_000 });
    expect(result.metadata).toMatchObject({ isTimedOut: true });
    expect(existsSync(join(root, "begun"))).toBe(true);
    while (workersIn(root).length > 0)
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
  });
});

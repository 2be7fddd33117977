import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { bashTool } from "../../../src/capabilities/tools/index.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

/** Another bubblewrap than the one in the PATH may be tried. */
const program = process.env["REEVE_BWRAP"] ?? "bwrap";
const works =
  spawnSync(program, ["--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true"])
    .status === 0;

/** Stands in for bubblewrap: writes down its arguments and runs what comes after them. */
async function standIn(folder: string): Promise<string> {
  const path = join(folder, "fake-bwrap");
  await writeFile(
    path,
    `#!/bin/bash\nprintf '%s\\n' "$@" > '${folder}/arguments'\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n`,
  );
  await chmod(path, 0o755);
  return path;
}

/** Processes whose working directory is this one. */
function workersIn(folder: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      // It ended while it was looked at.
      return false;
    }
  });
}

describe("the sandbox without bubblewrap", () => {
  const missing = "reeve-no-such-program";

  test("enforce runs nothing and says what to install", async () => {
    const root = await tempFolder();
    const tool = bashTool({ root, sandbox: { mode: "enforce", program: missing } });
    const result = await callTool(tool, { command: "touch ran" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(
      /^not run: the sandbox is enforced, and there is no reeve-no-such-program here: install bubblewrap \(/,
    );
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("enforce runs nothing when the program is there and does not work", async () => {
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

  test("warn runs it, and says so to the model and in the metadata", async () => {
    const tool = bashTool({ root: await tempFolder(), sandbox: { mode: "warn", program: missing } });
    const result = await callTool(tool, { command: "echo hi" });
    expect(result.isError).toBe(false);
    expect(textOf(result)).toMatch(/^hi\n\[run without a sandbox: there is no reeve-no-such-program here/);
    expect(result.metadata?.["sandbox"]).toMatchObject({
      mode: "warn",
      applied: "none",
      network: true,
      warning: expect.stringContaining("install bubblewrap"),
    });
  });

  test("a mode that is none is refused", async () => {
    const root = await tempFolder();
    expect(() => bashTool({ root, sandbox: "strict" as "warn" })).toThrow(
      "must be one of off, warn, enforce",
    );
  });
});

test("bubblewrap is told: system read-only, workspace writable, no network, environment as given", async () => {
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

describe.skipIf(!works)(
  "the sandbox with bubblewrap (skipped where the program is missing or may not work)",
  () => {
    test("reads the system, writes the workspace, and nothing else", async () => {
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

    test("reaches no network, not even this machine's, unless allowed", async () => {
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

    test("holds also what leaves the process group", async () => {
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
  },
);

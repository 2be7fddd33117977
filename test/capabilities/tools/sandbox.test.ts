import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { SandboxProcesses } from "../../../src/capabilities/sandbox/sandbox-processes.ts";
import { bashTool, type SandboxLimits } from "../../../src/capabilities/tools/index.ts";
import { callTool, tempFolder, textOf } from "./call-tool.ts";

const bubblewrap = inject("bubblewrap");
const works = "program" in bubblewrap;
const program = works ? bubblewrap.program : "bwrap";

/** Creates a stand-in for bubblewrap that records its options and environment and runs the command after them. */
async function standIn(folder: string, help = "--disable-userns --bind-fd"): Promise<string> {
  const path = join(folder, "fake-bwrap");
  await writeFile(
    path,
    `#!/bin/bash
if [ "$1" = --help ]; then echo '${help}'; exit; fi
if [ "$1" != --args ]; then exit; fi
tr '\\0' '\\n' <&3 > '${folder}/options'
tr '\\0' '\\n' < /proc/$$/environ > '${folder}/environment'
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`,
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

test("a sandbox counts as ended if its first process ends before the report of bubblewrap is read", async () => {
  const processes = new SandboxProcesses();
  // Only root lowers the priority of the process.
  processes.receive(`{ "child-pid": ${spawnSync("true").pid} }`);
  expect(await processes.ended()).toBeUndefined();
});

describe("bash without bubblewrap", () => {
  const missing = "reeve-no-such-program";

  test("bash without bubblewrap executes nothing in the mode enforce and says what to install", async () => {
    const root = await tempFolder();
    const tool = bashTool({ root, sandbox: { mode: "enforce", program: missing } });
    const result = await callTool(tool, { command: "touch ran" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toMatch(
      /^the command was not run, because the sandbox is enforced: the program reeve-no-such-program is not installed: install bubblewrap \(/,
    );
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("bash executes nothing in the mode enforce if bubblewrap is installed but does not work", async () => {
    const root = await tempFolder();
    const broken = join(await tempFolder(), "broken");
    await writeFile(broken, "#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n");
    await chmod(broken, 0o755);
    const result = await callTool(bashTool({ root, sandbox: { mode: "enforce", program: broken } }), {
      command: "touch ran",
    });
    expect(textOf(result)).toContain("does not work: setting up uid map: Permission denied");
    expect(existsSync(join(root, "ran"))).toBe(false);
  });

  test("bash without bubblewrap executes the command in the mode warn, and the result says that there is no sandbox", async () => {
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

  test("bash without bubblewrap refuses an unknown mode", async () => {
    const root = await tempFolder();
    expect(() => bashTool({ root, sandbox: "strict" as "warn" })).toThrow(
      "expected one of off, warn, enforce",
    );
  });
});

test("the default mode of bash is enforce", async () => {
  const root = await tempFolder();
  const tool = bashTool({ root });
  expect(tool.description).toContain("Commands run in a sandbox");
  expect(bashTool({ root, sandbox: "off" }).description).toContain("Commands run without a sandbox");
  expect(bashTool({ root, sandbox: "warn" }).description).toContain("if one is available");
});

test("bash gives bubblewrap no capabilities, an unprivileged user, no network, and its options through a pipe", async () => {
  const folder = await tempFolder();
  const root = join(folder, "work");
  await mkdir(join(root, "sub"), { recursive: true });
  const sandbox = { mode: "enforce", program: await standIn(folder), readable: ["/srv"] } as const;
  const options = { root, env: { TOKEN: "tok-123" } };
  const result = await callTool(bashTool({ ...options, sandbox }), { command: "echo ran", cwd: "sub" });
  expect(textOf(result)).toBe("ran");
  expect(result.metadata?.["sandbox"]).toEqual({ mode: "enforce", applied: "bubblewrap", network: false });
  const passed = (await readFile(join(folder, "options"), "utf8")).replaceAll("\n", " ");
  expect(passed).toMatch(/^--unshare-user --unshare-ipc --unshare-pid --unshare-uts /);
  expect(passed).toContain("--unshare-net --disable-userns --cap-drop ALL --uid 1000 --gid 1000 ");
  expect(passed).not.toContain("/etc /etc ");
  expect(passed).toContain("--ro-bind /srv /srv --bind-fd ");
  expect(passed).toContain("--remount-ro / --clearenv --setenv ");
  expect(passed).toContain("--setenv TOKEN tok-123");
  expect(passed).toContain(`--chdir ${join(root, "sub")} `);
  expect(await readFile(join(folder, "environment"), "utf8")).not.toMatch(/TOKEN|HOME=/);
  const open = await callTool(bashTool({ ...options, sandbox: { ...sandbox, network: true } }), {
    command: "true",
  });
  expect(open.metadata?.["sandbox"]).toMatchObject({ network: true });
  expect(await readFile(join(folder, "options"), "utf8")).not.toContain("--unshare-net");
});

test.each([
  ["--bind-fd", "lacks --disable-userns, which version 0.8.0 has"],
  [
    "--disable-userns",
    "lacks --bind-fd, which version 0.10.0, or the security update of an older version, has",
  ],
])("bash refuses a bubblewrap that has only the option %s", async (help, reason) => {
  const folder = await tempFolder();
  const root = join(folder, "work");
  await mkdir(root);
  const result = await callTool(
    bashTool({ root, sandbox: { mode: "enforce", program: await standIn(folder, help) } }),
    { command: "touch ran" },
  );
  expect(result.isError).toBe(true);
  expect(textOf(result)).toContain(reason);
  expect(existsSync(join(root, "ran"))).toBe(false);
});

test("bash does not use a bubblewrap that lies in the workspace", async () => {
  const root = await tempFolder();
  const result = await callTool(
    bashTool({ root, sandbox: { mode: "enforce", program: await standIn(root) } }),
    {
      command: "true",
    },
  );
  expect(textOf(result)).toContain("is not installed");
  expect(existsSync(join(root, "options"))).toBe(false);
});

test.each([
  [{ processes: 0 }, "invalid processes 0 of the sandbox's limits: expected an integer from 1"],
  [{ cores: 2 }, 'unknown option "cores" of the sandbox'],
])("bash refuses the sandbox limits %j", async (limits, message) => {
  const root = await tempFolder();
  expect(() => bashTool({ root, sandbox: { mode: "enforce", limits: limits as SandboxLimits } })).toThrow(
    message,
  );
});

describe.skipIf(!works)("bash with bubblewrap (skipped if the program is missing or may not work)", () => {
  test("bash with bubblewrap can read the system and write only the workspace", async () => {
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

  test("bash with bubblewrap cannot reach the network, not even this machine, unless the policy allows it", async () => {
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

  test("bash with bubblewrap also ends processes that left the process group", async () => {
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

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import type { ToolResult } from "../../src/kernel/index.ts";
import type { SandboxPolicy } from "../../src/capabilities/tools/index.ts";
import { guardedSnapshot, outsideSecret, snapshot, Worlds } from "./attacked-world.ts";
import { Attacker, attacksAs, environmentSecret, identities } from "./attacker.ts";
import {
  controls,
  floods,
  networks,
  neverCreated,
  privileges,
  secrets,
  small,
  writes,
} from "./shell-attacks.ts";

const bubblewrap = inject("bubblewrap");
const works = "program" in bubblewrap;
const program = works ? bubblewrap.program : "bwrap";

function textOf({ output }: ToolResult): string {
  return output.type === "text" ? output.text : JSON.stringify(output);
}

/** Returns a program that runs a command with `bash` and prints the result. */
function callOf(root: string, command: string): string {
  const tools = join(import.meta.dirname, "../../src/capabilities/tools/bash.ts");
  return `
    import { bashTool } from ${JSON.stringify(tools)};
    const tool = bashTool({ root: ${JSON.stringify(root)} });
    const context = { signal: new AbortController().signal, idempotencyKey: "k" };
    const call = tool.execute({ command: ${JSON.stringify(command)} }, context);
    console.log(await call.then((result) => result.output.text, (error) => error.message));
  `;
}

/** Returns the processes of this machine whose command line contains a text. */
function processesWith(text: string): readonly string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(text);
    } catch {
      // The process ended meanwhile.
      return false;
    }
  });
}

const ownWorlds = new Worlds();
afterAll(() => ownWorlds.close());

describe.each(identities())("shell commands as $name", (identity) => {
  const worlds = new Worlds(identity.uid);
  let attacker: Attacker;
  let servers: readonly Server[];
  let port: number;
  beforeAll(async () => {
    attacker = new Attacker(identity);
    const listening = (server: Server, where: number | string): Promise<void> =>
      new Promise((resolve) => {
        server.listen(where, resolve);
      });
    const [byPort, byName] = [createServer((socket) => socket.end()), createServer((socket) => socket.end())];
    await listening(byPort, 0);
    ({ port } = byPort.address() as { port: number });
    await listening(byName, `\0reeve-attack-${port}`);
    servers = [byPort, byName];
  });
  afterAll(() => {
    attacker.end();
    worlds.close();
    for (const server of servers) server.close();
  });

  async function run(command: string, policy: Partial<SandboxPolicy> = {}, timeoutMs = 20_000) {
    const world = worlds.take();
    const before = guardedSnapshot(world);
    const result = await attacker.call({
      root: world.inside,
      tool: "bash",
      input: { command: `breach() { printf 'BRE%s\\n' ACH; }\n${command}`, timeoutMs },
      options: {
        sandbox: { mode: "enforce", program, ...policy },
        env: { OUTSIDE: world.outside, PARENT: String(attacker.pid), PORT: String(port) },
        graceMs: 20,
      },
    });
    return { world, before, result, text: textOf(result) };
  }

  describe.skipIf(!works)("bash in the sandbox (skipped if bubblewrap is missing)", () => {
    const attacks = [
      ...secrets.map(([name, command]) => [`read ${name}`, command] as const),
      ...writes.map(([name, command]) => [`write ${name}`, command] as const),
      ...privileges.map(([name, command]) => [`gain or use ${name}`, command] as const),
      ...networks.map(([name, command]) => [`reach ${name}`, command] as const),
      ...controls.map(([name, command]) => [`leave behind ${name}`, command] as const),
    ];
    test.each(attacksAs(identity, attacks))("a sandboxed shell command cannot %s", async (_, command) => {
      const { world, before, result, text } = await run(command);
      expect(text).not.toContain("BREACH");
      expect(text).not.toContain(outsideSecret);
      expect(text).not.toContain(environmentSecret);
      expect({ text, ...result.metadata }).toMatchObject({
        sandbox: { applied: "bubblewrap", network: false },
      });
      expect(guardedSnapshot(world)).toEqual(before);
      for (const path of neverCreated) expect(existsSync(join(world.inside, path))).toBe(false);
      expect(attacker.isAlive).toBe(true);
    });

    test.each(attacksAs(identity, floods))(
      "shell commands in the sandbox are contained when they start %s",
      async (_, command) => {
        const { text } = await run(command, { limits: small });
        expect(text).not.toContain("BREACH");
        expect(attacker.isAlive).toBe(true);
      },
    );

    test.each([
      ["200 MB of output", "head -c 200M /dev/zero | tr '\\0' x"],
      ["endless output", "yes"],
      ["output without line breaks to both streams", "cat /dev/zero >&2 & cat /dev/zero"],
    ])("bash in the sandbox returns a bounded result for %s", async (_, command) => {
      const { text } = await run(command, {}, 1_500);
      expect(text.length).toBeLessThan(40_000);
    });

    test.each([
      ["a process in its own session", "setsid MARKER > /dev/null 2>&1 &"],
      ["a process that ignores signals", "(trap '' TERM HUP INT; exec MARKER) > /dev/null 2>&1 &"],
      ["a process with two parents fewer", "( ( exec MARKER ) & ) > /dev/null 2>&1"],
    ])("shell commands in the sandbox leave no process behind after %s", async (_, command) => {
      const marker = `${600_000 + attacker.pid}.${Math.random().toString().slice(2, 10)}`;
      await run(command.replace("MARKER", `sleep ${marker}`));
      expect(processesWith(marker)).toEqual([]);
    });

    test("the sandbox creates nothing in the workspace to protect it from commands", async () => {
      const world = worlds.take();
      const before = snapshot(world.folder);
      await attacker.call({ root: world.inside, tool: "bash", input: { command: "true" } });
      expect(snapshot(world.folder)).toEqual(before);
    });

    test.each(["beside the workspace", "above the workspace"])(
      "a sandboxed command cannot write control files of a writable folder %s",
      async (where) => {
        const world = worlds.take();
        const root = join(world.inside, where === "above the workspace" ? "sub" : "dotfiles");
        const folder = where === "above the workspace" ? world.inside : join(world.inside, "bare.git");
        const before = guardedSnapshot(world);
        const result = await attacker.call({
          root,
          tool: "bash",
          input: {
            command: `cd ${folder}; echo x >> config; echo x > hooks/update; echo x >> .git/config; echo x >> sub/.envrc; echo x > plain && echo written`,
          },
          options: { sandbox: { mode: "enforce", program, writable: [folder] } },
        });
        expect(textOf(result)).toContain("written");
        expect(guardedSnapshot(world)).toEqual(before);
      },
    );

    test("the sandbox reports new control files of a command, and undoes those of an existing repository", async () => {
      const { world, result, text } = await run("mkdir new; echo x > new/.envrc; echo ../x > .git/commondir");
      expect(result.metadata?.["sandbox"]).toMatchObject({
        created: [join(world.inside, "new/.envrc")],
        undone: [join(world.inside, ".git/commondir")],
      });
      expect(text).toMatch(/\[undone, .*\.git\/commondir\]\n\[created control files, .*new\/\.envrc\]$/);
      const kept = await readdir(join(world.inside, ".git"));
      expect(kept.filter((name) => name.startsWith("commondir.refused-"))).toHaveLength(1);
    });

    test("a sandboxed command ends at the first change of a control file that could not be mounted, before a program obeys it", async () => {
      const command = "echo ../x > .git/commondir; sleep 2; cat .git/commondir; echo late > late; sleep 60";
      const { world, text } = await run(command);
      expect(text).toMatch(
        /^\[stopped: the command changed a control file\]\n\[undone, .*\.git\/commondir\]$/,
      );
      expect(await readdir(world.inside)).not.toContain("late");
    });

    test("sandboxed commands can commit to a repository, whose index, objects and refs stay writable", async () => {
      const world = worlds.take();
      const repository = join(world.inside, "project");
      await mkdir(repository);
      if (identity.uid !== undefined) await chown(repository, identity.uid, identity.uid);
      const git = (...args: readonly string[]) =>
        execFileSync("git", args, {
          cwd: repository,
          env: { PATH: process.env["PATH"], HOME: world.folder },
          ...(identity.uid !== undefined && { uid: identity.uid, gid: identity.uid }),
        });
      git("init", "-q");
      git("config", "user.name", "Ann");
      git("config", "user.email", "ann@example.com");
      const result = await attacker.call({
        root: repository,
        tool: "bash",
        input: {
          command:
            "echo 1 > a && git add a && git commit -qm one && git checkout -qb topic && echo 2 > a && git commit -qam two && git log --format=%s && git tag v1 && git gc -q",
        },
      });
      expect(textOf(result)).toBe("two\none");
      expect(result.isError).toBe(false);
      expect(String(git("log", "--format=%s %D"))).toMatch(/^two HEAD -> topic, tag: v1\none/);
    });

    test("sandboxed commands see the network and its settings only if the policy allows it", async () => {
      const { text } = await run("exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached; ls /etc/shadow", {
        network: true,
      });
      expect(text).toContain("reached");
      expect(text).toContain("'/etc/shadow': No such file");
    });

    test("shell commands cannot use file descriptors that the process inherited, and keep their own", async () => {
      const world = ownWorlds.take();
      await writeFile(
        join(world.folder, "call.ts"),
        callOf(world.inside, "cat /proc/self/fd/200/secret; echo error >&2; ls /proc/self/fd"),
      );
      const script = `exec 200<"$0" && exec "$@"`;
      const said = execFileSync(
        "bash",
        ["-c", script, world.outside, process.execPath, join(world.folder, "call.ts")],
        { encoding: "utf8" },
      );
      expect(said).toMatch(/^cat: .*No such file or directory\nerror\n0\n1\n2\n3\n/);
    });

    test("commands in the sandbox do not expose values of the option env in the arguments of a process", async () => {
      const world = worlds.take();
      const calling = attacker.call({
        root: world.inside,
        tool: "bash",
        input: { command: "touch begun; while [ ! -e over ]; do sleep 0.01; done" },
        options: { env: { TOKEN: "TOKEN-31337" }, timeoutMs: 20_000 },
      });
      while (!existsSync(join(world.inside, "begun")))
        await new Promise<void>((resolve) => {
          setImmediate(resolve);
        });
      const seen = processesWith("TOKEN-31337");
      await writeFile(join(world.inside, "over"), "");
      await calling;
      expect(seen).toEqual([]);
    });
  });

  test.each([
    ["a file outside", 'cat "$OUTSIDE/secret" && breach'],
    ["a git configuration", "echo x >> .git/config && breach"],
    [
      "the environment of the parent",
      'cat "/proc/$PARENT/environ" | tr "\\0" "\\n" | grep REEVE_ATTACK && breach',
    ],
  ])(
    "shell commands reach %s with the sandbox off, so that this suite detects a breach",
    async (_, command) => {
      const { text, result } = await run(command, { mode: "off" });
      expect(text).toContain("BREACH");
      expect(result.metadata?.["sandbox"]).toEqual({ mode: "off", applied: "none", network: true });
    },
  );

  describe("bash without bubblewrap", () => {
    const script = (text: string) => `#!/bin/sh\n${text}\n`;
    test.each([
      ["is missing", "no-such-bubblewrap", undefined],
      ["is a folder", "tools/folder", null],
      ["is not executable", "tools/plain", { text: script("exit 0"), mode: 0o644 }],
      [
        "may not create user namespaces",
        "tools/denied",
        { text: script("echo 'No permissions to create new namespace' >&2; exit 1"), mode: 0o755 },
      ],
      ["lacks --disable-userns", "tools/old", { text: script("echo --bind-fd"), mode: 0o755 }],
      ["lacks --bind-fd", "tools/older", { text: script("echo --disable-userns"), mode: 0o755 }],
      [
        "lies in the workspace",
        "inside/bwrap",
        { text: script("echo --disable-userns --bind-fd"), mode: 0o755 },
      ],
      [
        "is a link into the workspace",
        "inside/linked",
        { text: script("echo --disable-userns --bind-fd"), mode: 0o755 },
      ],
    ])("shell commands are refused if bubblewrap %s", async (_, name, content) => {
      const world = worlds.take();
      await mkdir(join(world.folder, "tools/folder"), { recursive: true });
      await chmod(world.folder, 0o755);
      const path = name.includes("/") ? join(world.folder, name) : name;
      if (content) {
        await writeFile(path, content.text);
        await chmod(path, content.mode);
      }
      const result = await attacker.call({
        root: world.inside,
        tool: "bash",
        input: { command: "touch ran; echo BREACH" },
        options: { sandbox: { mode: "enforce", program: path } },
      });
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(
        /^the command was not run, because the sandbox is enforced: .*bubblewrap|user namespaces/,
      );
      expect(existsSync(join(world.inside, "ran"))).toBe(false);
    });

    test.skipIf(!works)(
      "shell commands are refused where user namespaces are forbidden (skipped if bubblewrap is missing)",
      async () => {
        const world = ownWorlds.take();
        await writeFile(join(world.folder, "call.ts"), callOf(world.inside, "touch ran"));
        const args = ["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", process.execPath];
        const said = execFileSync(program, [...args, join(world.folder, "call.ts")], { encoding: "utf8" });
        expect(said).toMatch(
          /^the command was not run, because the sandbox is enforced: .* is installed but does not work: /,
        );
        expect(said).toContain("Allow user namespaces");
        expect(existsSync(join(world.inside, "ran"))).toBe(false);
      },
    );
  });
});

test("bash refuses commands on a system other than Linux and names what to do", async () => {
  const { bashTool } = await import("../../src/capabilities/tools/index.ts");
  const { inside } = ownWorlds.take();
  const platform = Object.getOwnPropertyDescriptor(process, "platform");
  Object.defineProperty(process, "platform", { value: "darwin" });
  try {
    const context = { signal: new AbortController().signal, idempotencyKey: "k" } as never;
    await expect(bashTool({ root: inside }).execute({ command: "touch ran" }, context)).rejects.toThrow(
      "bubblewrap works only on Linux, and this is darwin; run Reeve in a Linux container",
    );
  } finally {
    if (platform !== undefined) Object.defineProperty(process, "platform", platform);
  }
  expect(await readFile(join(inside, "file"), "utf8")).toBe("original\n");
  expect(existsSync(join(inside, "ran"))).toBe(false);
});

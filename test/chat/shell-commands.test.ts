import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { shellCommandOf, ShellCommands } from "../../src/surfaces/cli/chat/front/shell-commands.ts";

const execute = promisify(execFile);

/** Whether a process runs. One that has ended may wait for its parent to notice. */
async function isRunning(pid: string): Promise<boolean> {
  const { stdout } = await execute("ps", ["-o", "stat=", "-p", pid]).catch(() => ({ stdout: "Z" }));
  return !stdout.trim().startsWith("Z");
}

test("a shell command that is stopped in a chat ends with its processes, and a second command is refused while one runs", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-shell-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
  const shell = new ShellCommands(folder);
  const running = shell.run({
    command: "sleep 1000 & echo $! > started; mv started pid; wait",
    isForModel: true,
  });
  await expect(shell.run({ command: "echo second", isForModel: true })).rejects.toThrow(
    "a command still runs, and commands run one at a time",
  );
  await expect.poll(() => existsSync(join(folder, "pid"))).toBe(true);
  expect(shell.isRunning).toBe(true);
  shell.stop();
  expect(await running).toMatch(/\[stopped\]$/u);
  const pid = (await readFile(join(folder, "pid"), "utf8")).trim();
  await expect.poll(() => isRunning(pid)).toBe(false);
  expect(shell.isRunning).toBe(false);
});

test.for([
  { text: "!ls -l", is: { command: "ls -l", isForModel: true } },
  { text: "!!ls", is: { command: "ls", isForModel: false } },
  { text: "!", is: undefined },
  { text: "ls!", is: undefined },
])("the chat reads the text $text as the shell command $is", ({ text, is }) => {
  expect(shellCommandOf(text)).toEqual(is);
});

test("the output of a shell command in a chat goes to the model once, with the next text that can be sent", async () => {
  const shell = new ShellCommands(process.cwd());
  await shell.run({ command: "echo for the model", isForModel: true });
  await shell.run({ command: "echo for me", isForModel: false });
  const sent: unknown[] = [];
  const refuse = (): Promise<void> => Promise.reject(new Error("the server does not answer"));
  await expect(shell.send("Look", refuse)).rejects.toThrow("does not answer");
  for (const text of ["Look", "Again"]) await shell.send(text, async (input) => void sent.push(input));
  expect(sent).toEqual(["$ echo for the model\nfor the model\n\nLook", "Again"]);
});

test("a chat shows the beginning of a shell command's gigabyte of output, and counts the remaining bytes", async () => {
  const shell = new ShellCommands(process.cwd());
  const said = await shell.run({ command: "head -c 1000000000 /dev/zero | tr '\\0' x", isForModel: false });
  expect(said.length).toBeLessThan(51_000);
  expect(said).toMatch(/x\n\[999950000 more bytes\]$/u);
});

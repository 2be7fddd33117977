import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isFull } from "../effort.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { main, reeve, reeveProcess } from "../surfaces/cli/reeve-process.ts";
import { serve } from "../surfaces/cli/serve-process.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

const markdown = "# Lamp\n\nIt is **green**.\n\n| place | lamp |\n|---|---|\n| door | green |\n";

describe.skipIf(lacksTmux)("reeve chat in a terminal", () => {
  test.for(isFull ? (["80x24", "200x50"] as const) : (["80x24"] as const))(
    "a person talks with an agent in reeve chat, approves a call and leaves, in a terminal of %s",
    async (size) => {
      const { folder, url } = await setUp((request) =>
        request === 1
          ? { text: markdown }
          : request === 2
            ? { tool: "write", input: { path: "made.txt", content: "one\ntwo\n" } }
            : { text: "Written." },
      );
      const terminal = await openTerminal({ size, cwd: folder, env: env(url) });
      await terminal.reeve("chat", "--tools", "all", "--sandbox", "off");
      await terminal.shows(/assistant · openai-compatible\/gpt-4o/u);
      await terminal.type("Which lamp?");
      await terminal.press("Enter");
      await terminal.shows(/Done · 1,100 tokens/u, /❯ Which lamp\?/u, /│ door\s+│ green │/u, {
        lacks: /\*\*green/u,
      });
      await terminal.type("Write a file");
      await terminal.press("Enter");
      await terminal.shows(
        /assistant May it call write\?[^]*→ y {2}Yes/u,
        /path: made\.txt\n\s+content:\n\s+one\n\s+two/u,
      );
      await terminal.press("y");
      await terminal.shows(/Written\./u);
      expect(await readFile(join(folder, "made.txt"), "utf8")).toBe("one\ntwo\n");
      await terminal.shows(/✓ write made\.txt · \d/u, /→ yes/u);
      await terminal.press("C-d");
      await terminal.shows(/Continue with: reeve chat --session ses_[^]*ended 0/u);
      await terminal.type("echo $((6 * 7)) echoed");
      await terminal.press("Enter");
      await terminal.shows(/^42 echoed/mu);
    },
  );

  test("in a chat, Enter steers a working agent, Alt+Enter queues, and Escape stops it and restores the waiting texts", async () => {
    const { folder, url, asked } = await setUp((request) => (request === 1 ? undefined : { text: "Again." }));
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.type("Look around");
    await terminal.press("Enter");
    await asked(1);
    await terminal.type("be brief");
    await terminal.press("Enter");
    await terminal.shows(/↳ next turn: be brief/u);
    await terminal.type("then stop");
    await terminal.press("M-Enter");
    await terminal.shows(/↳ at the end: then stop/u);
    // A command is executed at once, and any other text that begins with a slash is queued.
    await terminal.type("/name Lamps");
    await terminal.shows(/\n \/name Lamps/u);
    await terminal.press("M-Enter");
    await terminal.shows(/This conversation is now Lamps/u);
    await terminal.type("/etc/hosts is odd");
    await terminal.shows(/\n \/etc\/hosts is odd/u);
    await terminal.press("M-Enter");
    await terminal.shows(/↳ at the end: \/etc\/hosts is odd/u);
    await terminal.press("Escape");
    await terminal.shows(/Cancelled · /u, /─\n be brief\s*\n then stop\s*\n \/etc\/hosts is odd\s*\n─/u, {
      lacks: /↳/u,
    });
    await terminal.press("Enter");
    await terminal.shows(/❯ be brief\s*\n {2}then stop\s*\n {2}\/etc\/hosts is odd[^]*Again\./u);
  });

  test("a person in a chat opens a single call, edits and withdraws queued texts, and learns that one was already read", async () => {
    const third = Promise.withResolvers<{ text: string }>();
    const { folder, url, asked } = await setUp((request) =>
      request <= 2
        ? { tool: "read", input: { path: request === 1 ? "notes.txt" : "absent.txt" } }
        : request === 3
          ? third.promise
          : { text: "Again." },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.submit("Look around");
    await asked(3);
    await terminal.shows(/✗ read absent\.txt/u);
    await terminal.press("C-Up", "C-Up");
    await terminal.shows(/› ✓ read notes\.txt[^]*\n› read notes\.txt/u);
    await terminal.press("M-o");
    await terminal.shows(/The lamp is green\./u, { lacks: /path: absent\.txt/u });
    await terminal.press("M-o");
    await terminal.lacks(/The lamp is green\./u);
    for (const text of ["one", "two", "three"]) {
      await terminal.type(text);
      await terminal.shows(`\n ${text}`);
      await terminal.press("M-Enter");
      await terminal.shows(new RegExp(`at the end: ${text}`, "u"));
    }
    await terminal.press("M-e");
    await terminal.shows(/Which text of the queue/u);
    await terminal.press("Enter");
    await terminal.shows(/Withdraw it/u);
    await terminal.press("e");
    await terminal.shows(/\n one\s*\n─[^]*Enter puts the text back/u);
    await terminal.type(" more");
    await terminal.shows(/\n one more/u);
    await terminal.press("Enter");
    await terminal.shows(/at the end: one more\s*\n.*at the end: two\s*\n.*at the end: three/u);
    await terminal.press("M-e");
    await terminal.shows(/Which text of the queue/u);
    await terminal.press("Down");
    await terminal.shows(/→ two/u);
    await terminal.press("Enter");
    await terminal.shows(/Withdraw it/u);
    await terminal.press("w");
    await terminal.shows(/The text is withdrawn\.[^]*at the end: one more\s*\n.*at the end: three/u);
    await terminal.press("M-e");
    await terminal.shows(/Which text of the queue/u);
    await terminal.press("Enter");
    await terminal.shows(/Withdraw it/u);
    third.resolve({ text: "Now." });
    await asked(4);
    await terminal.press("w");
    await terminal.shows(/It was too late: the agent has read this text/u);
  });

  test("the conversation of another agent that is opened with Ctrl+T in a chat grows while the agent works", async () => {
    const [read, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const { folder, url, asked } = await setUp(async (request) => {
      if (request === 1) return { tool: "handoff_scout", input: { task: "Look at the lamp" } };
      if (request > 3) return undefined;
      await (request === 2 ? read : answered).promise;
      return request === 2
        ? { tool: "read", input: { path: "notes.txt" } }
        : { text: "The lamp is **green**." };
    });
    const agents = {
      lead: "tools: none\nsubAgents: [scout]\n---\nYou lead.",
      scout: "tools: [read]\n---\nYou scout.",
    };
    await mkdir(join(folder, "home/agents"), { recursive: true });
    for (const [name, text] of Object.entries(agents))
      await writeFile(
        join(folder, `home/agents/${name}.md`),
        `---\nmodel: openai-compatible/gpt-4o\n${text}`,
      );
    const variables = { ...env(url), REEVE_HOME: join(folder, "home") };
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: variables });
    await terminal.reeve("chat", "--agent", "lead");
    await terminal.shows(/gpt-4o/u);
    await terminal.submit("Go");
    await asked(2);
    await terminal.press("C-t");
    await terminal.shows(/└─ ● scout/u);
    await terminal.press("Down");
    await terminal.shows(/› └─ ● scout/u);
    await terminal.press("Enter");
    await terminal.shows(/❯ Look at the lamp[^]*Esc returns/u, { lacks: /❯ Go|✓ read/u });
    read.resolve();
    await terminal.shows(/✓ read notes\.txt/u);
    answered.resolve();
    await terminal.shows(/✓ read notes\.txt[^]*The lamp is green\./u);
    await terminal.press("Escape");
    await terminal.lacks(/✓ read/u);
    await terminal.press("Escape");
    await terminal.shows(/❯ Go\s+✓ handoff_scout .* · \$0\.0070\d*\n▸ scout t1: done · \$0\.0070/u);
  });

  test("/continue in a chat continues a failed run and pays no answered call again", async () => {
    const { folder, url, requests } = await setUp((request) =>
      request === 1
        ? { tool: "read", input: { path: "notes.txt" } }
        : request === 2
          ? { error: 401 }
          : { text: "Once more." },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.submit("Read the notes");
    await terminal.shows(/Failed · /u);
    await terminal.submit("/continue");
    await terminal.shows(/Once more\.[^]*Done/u, /✓ read notes\.txt/u, {
      lacks: /✓ read notes\.txt[^]*✓ read notes\.txt/u,
    });
    expect(requests).toHaveLength(3);
  });

  test("a chat that is killed with SIGKILL continues its run with --continue, and pays no answered call again", async () => {
    const { folder, url, asked, requests } = await setUp((request) =>
      request === 1
        ? { tool: "read", input: { path: "notes.txt" } }
        : request === 2
          ? undefined
          : { text: "Still green." },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.type("Read the notes");
    await terminal.press("Enter");
    await asked(2);
    process.kill(await terminal.processId(), "SIGKILL");
    await terminal.shows(/Killed/u);
    const next = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await next.reeve("chat", "--continue");
    await next.shows(/Still green\.[^]*Done/u, /❯ Read the notes/u, /✓ read notes\.txt/u);
    expect(requests).toHaveLength(3);
  });

  test("a chat with --url survives its server, which is killed and started again", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 1 ? undefined : { text: "Back again." },
    );
    const first = await serve(folder, url, "--no-token");
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat", "--url", first.link.origin);
    await terminal.shows(/gpt-4o/u);
    await terminal.type("Wait for me");
    await terminal.press("Enter");
    await asked(1);
    await first.stop("SIGKILL");
    await terminal.shows(/The server does not answer/u);
    const second = await serve(folder, url, "--no-token", "--port", first.link.port);
    await terminal.shows(/Back again\.[^]*Done/u, /❯ Wait for me/u, {
      lacks: /does not answer|❯ Wait for me[^]*❯ Wait for me/u,
    });
    await second.stop("SIGTERM");
  });

  test("a chat shows control and bidirectional characters of tool output escaped, and uses no colours with NO_COLOR", async () => {
    const { folder, url } = await setUp((request) =>
      request === 1
        ? { tool: "bash", input: { command: String.raw`printf 'a\033[2Jb\342\200\256c\n'` } }
        : { text: "It \u{1b}[31mprinted\u{202e} it." },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: { ...env(url), NO_COLOR: "1" } });
    await terminal.reeve("chat", "--tools", "all", "--sandbox", "off");
    await terminal.shows(/gpt-4o/u);
    await terminal.type("Print");
    await terminal.press("Enter");
    await terminal.shows(/→ y {2}Yes/u);
    await terminal.press("y");
    await terminal.shows(/Done · /u);
    await terminal.press("C-o");
    await terminal.shows(/a\\u001b\[2Jb\\u202ec/u, String.raw`It \u001b[31mprinted\u202e it.`);
    const painted = (await terminal.screen({ colours: true })).replaceAll("\u{1b}", "ESC");
    expect(painted).not.toMatch(/ESC\[(?:1|2|3[0-7]|9[0-7])m/u);
  });

  test("closing the terminal of a chat leaves its run, and a terminal of 20x5 is enough to continue it", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 1 ? undefined : { text: "After all." },
    );
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.reeve("chat");
    await terminal.shows(/gpt-4o/u);
    await terminal.type("Stay");
    await terminal.press("Enter");
    await asked(1);
    const pid = await terminal.processId();
    await terminal.close();
    await expect.poll(() => isAlive(pid)).toBe(false);
    const small = await openTerminal({ size: "20x5", cwd: folder, env: env(url) });
    await small.reeve("chat", "--continue");
    await small.shows(/^assistant/mu);
    for (const [columns, rows] of [
      [60, 20],
      [1, 1],
      [80, 24],
    ] as const)
      await small.resize(columns, rows);
    await small.shows(/After all\./u);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("reeve chat reads prompts from a pipe one after the other, and prints the answers without control characters", async () => {
  const { folder, url } = await setUp((request) => ({ text: `Answer ${request} \u{1b}[31m.` }));
  const said = await reeveProcess(["chat", "--plain"], {
    cwd: folder,
    env: env(url),
    input: "One\n/cost\nTwo\n",
  });
  expect(said.out).toEqual([String.raw`Answer 1 \u001b[31m.`, String.raw`Answer 2 \u001b[31m.`]);
  expect(said.code).toBe(0);
  expect(said.talk).toMatch(/1 runs of this conversation[^]*session ses_/u);
});

test("reeve chat in lines sends the next text after its question was answered elsewhere", async () => {
  const { folder, url, requests } = await setUp((request) =>
    request === 1
      ? { tool: "write", input: { path: "made.txt", content: "x" } }
      : { text: `Answer ${request}.` },
  );
  const environment = { ...process.env, ...env(url) };
  const child = spawn(process.execPath, [main, "chat", "--plain", "--tools", "all", "--sandbox", "off"], {
    cwd: folder,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece: string) => (said += piece));
  child.stdin.write("Write a file\n");
  await expect.poll(() => said).toMatch(/May it call write/u);
  const listed = await reeve(["inbox", "--json"], { cwd: folder, env: env(url) });
  const runId = /"runId": ?"(run_[^"]+)"/u.exec(listed.out.join("\n"))?.[1] ?? "";
  await reeve(["approve", runId, "--yes"], { cwd: folder, env: env(url) });
  await expect.poll(() => said).toMatch(/Answer 2\./u);
  child.stdin.end("And now?\n");
  const [code] = (await once(child, "close")) as [number];
  expect([code, said]).toEqual([0, expect.stringContaining("Answer 3.")]);
  expect(requests).toHaveLength(3);
});

test.for([
  { args: ["--session", "s", "--continue"], problem: "--session and --continue exclude each other" },
  {
    args: ["--url", "localhost:4711"],
    problem: "expected the address of a server without a path or a password, such as http://127.0.0.1:4711",
  },
  {
    args: ["--url", "http://127.0.0.1:4711", "--tools", "all"],
    problem: "--tools cannot change the agents of a server",
  },
])("reeve chat refuses the arguments $args", async ({ args, problem }) => {
  const { code, talk } = await reeve(["chat", ...args]);
  expect(talk).toContain(problem);
  expect(code).toBe(2);
});

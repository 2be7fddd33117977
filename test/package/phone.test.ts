import { spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, inject, test } from "vitest";
import { codeBlocks, fences } from "./code-blocks.ts";
import { readDocuments } from "./documents.ts";
import { withoutNetwork } from "./run-offline.ts";

const { project, command: reeve } = inject("installed");
const tutorial = (await readDocuments())["docs/start/getting-started.md"] ?? "";

/** A command of the tutorial that is running: its lines, and its end. */
interface Running {
  readonly child: ChildProcess;
  /** Returns the next line of the command. Rejects if the command ends before it. */
  line(): Promise<string>;
  readonly ended: Promise<{ readonly code: number | null; readonly stderr: string }>;
}

test("the phone of the tutorial signs in with its token, sees the question, and its approval ends the waiting program", async () => {
  const folder = await mkdtemp(join(project, "phone-"));
  const running: Running[] = [];
  try {
    for (const { title, code } of codeBlocks(tutorial))
      if (title !== undefined) await writeFile(join(folder, title), code);
    const start = (text: string): Running => {
      const started = run(text, folder);
      running.push(started);
      return started;
    };

    const create = start(shellBlock(({ code }) => code.startsWith("npx reeve token create")));
    const token = await create.line();
    expect((await create.ended).code).toBe(0);

    // A test listens on loopback only, at a free port.
    const serve = terminal(1).replace("--host 0.0.0.0", "--port 0");
    expect(serve).not.toBe(terminal(1));
    const server = start(serve);
    const url = new URL(await server.line()).origin;

    const program = start(terminal(2));
    const [waiting, completed] = terminalText().split("\n");
    expect(await program.line()).toBe(waiting);

    const page = { accept: "text/html" };
    expect((await fetch(url, { headers: page })).status).toBe(401);
    const signedIn = await fetch(`${url}/login`, {
      method: "POST",
      redirect: "manual",
      headers: { ...page, origin: url },
      body: new URLSearchParams({ token, to: "/inbox" }),
    });
    expect([signedIn.status, signedIn.headers.get("location")]).toEqual([303, "/inbox"]);
    const [cookie = ""] = (signedIn.headers.get("set-cookie") ?? "").split(";");

    const open = async (): Promise<readonly { readonly approvalId: string; readonly runId: string }[]> => {
      const inbox = await fetch(`${url}/api/approvals`, { headers: { cookie } });
      return ((await inbox.json()) as { readonly approvals: readonly [] }).approvals;
    };
    await expect
      .poll(open, { timeout: 60_000 })
      .toMatchObject([{ toolName: "pay", input: { usd: 900 }, tenantId: "home", userId: "ann" }]);
    const [question] = await open();
    const decided = await fetch(`${url}/api/runs/${question?.runId}/decide`, {
      method: "POST",
      headers: { cookie, origin: url, "content-type": "application/json" },
      body: JSON.stringify({ approvalId: question?.approvalId, decision: "approved" }),
    });
    expect(decided.status).toBeLessThan(300);

    expect(await program.line()).toBe(completed);
    expect((await program.ended).code).toBe(0);
    server.child.kill("SIGINT");
    expect((await server.ended).code).toBe(0);
  } finally {
    for (const { child } of running) child.kill("SIGKILL");
    await Promise.allSettled(running.map(({ ended }) => ended));
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
});

function shellBlock(
  isWanted: (block: { readonly title: string | undefined; readonly code: string }) => boolean,
): string {
  const found = fences(tutorial).filter((block) => block.language === "sh" && isWanted(block));
  expect(found).toHaveLength(1);
  return found[0]?.code.trim() ?? "";
}

function terminal(number: number): string {
  return shellBlock(({ title }) => title === `Terminal ${number}`);
}

/** What the tutorial says that the second terminal prints. */
function terminalText(): string {
  return (
    fences(tutorial).find(({ language, title }) => language === "text" && title === "Terminal 2")?.code ?? ""
  );
}

/** Starts a command of the tutorial, `node FILE` or `npx reeve ...`, without a network. */
function run(text: string, cwd: string): Running {
  const [program, ...words] = text.split(/\s+/u);
  const args = program === "npx" ? [reeve, ...words.slice(1)] : words;
  const child = spawn(process.execPath, [...withoutNetwork, ...args], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (stderr += piece));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    line: async () => {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${text} ended before its next line: ${stderr}`);
      return value;
    },
    ended: new Promise((resolve) => void child.once("close", (code) => resolve({ code, stderr }))),
  };
}

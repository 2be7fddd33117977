import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Terminal } from "../../src/surfaces/cli/terminal/terminal.ts";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { plainWatch } from "../../src/surfaces/cli/watch/plain-watch.ts";
import { watchCommand } from "../../src/surfaces/cli/watch/watch-command.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { reeve, reeveProcess } from "../surfaces/cli/reeve-process.ts";
import { serve } from "../surfaces/cli/serve-process.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

const silent: Terminal = {
  out: async () => undefined,
  say: () => undefined,
  put: () => undefined,
  isWatched: false,
  canAsk: false,
  ask: async () => undefined,
  input: async () => "",
  onInterrupt: () => () => undefined,
  env: {},
};

interface Company {
  readonly folder: string;
  readonly variables: Readonly<Record<string, string>>;
}

/** A folder with a lead that hires a scout. The scout asks before it writes a file, and its last answer never comes. */
async function companyFolder(): Promise<Company> {
  const { folder, url } = await setUp((_request, { messages }) => {
    const [system, ...others] = messages as readonly { readonly role: string }[];
    const results = others.filter(({ role }) => role === "tool").length;
    const isScout = JSON.stringify(system).includes("You scout");
    if (!isScout) return { tool: "handoff_scout", input: { task: "Write it" } };
    return results === 0
      ? { tool: "write", input: { path: "made.txt", content: "a\u{1b}[2Jb\u{202e}c" } }
      : undefined;
  });
  const agents = {
    lead: "tools: none\nsubAgents: [scout]\nbudget: { maxCostUsd: 0.5 }\n---\nYou lead.",
    scout: "tools: [write]\n---\nYou scout.",
  };
  await mkdir(join(folder, "home/agents"), { recursive: true });
  for (const [name, text] of Object.entries(agents))
    await writeFile(join(folder, `home/agents/${name}.md`), `---\nmodel: openai-compatible/gpt-4o\n${text}`);
  return { folder, variables: { ...env(url), REEVE_HOME: join(folder, "home") } };
}

async function post(url: string, body: object): Promise<{ readonly run: { readonly runId: string } }> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as { readonly run: { readonly runId: string } };
}

describe.skipIf(lacksTmux)("reeve watch in a terminal", () => {
  test("a person in reeve watch opens a live run, approves a child's call, tops up, steers, pauses, resumes and cancels", async () => {
    const { folder, variables } = await companyFolder();
    const server = await serve(folder, variables, "--no-token");
    const { run } = await post(`${server.link.origin}/api/runs`, { agent: "lead", input: "Go" });
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: variables });
    await terminal.reeve("watch");
    await terminal.shows(
      /\? lead {2}Go +Waits for you[^]*Inbox: 1 waits for you[^]*\? scout: wants to call write/u,
    );
    await terminal.press("Enter");
    await terminal.shows(
      /└─ \? scout +▪ .*waits for you: write/u,
      /\$0\.0070 spent · \$\S+ reserved · budget \$0\.5000/u,
      /AGENT +SEAT +NOW +TURNS +COST\n[^]*─ Inbox: 1 waits/u,
    );
    await terminal.press("a");
    await terminal.shows(
      /→ y {2}Yes/u,
      /scout asks\n {2}path: made\.txt\n {2}content: a\\u001b\[2Jb\\u202ec/u,
    );
    await terminal.press("y");
    await terminal.shows(/Answered: scout\./u);
    await terminal.shows(/└─ ● scout .*calls gpt-4o/u);
    expect(await readFile(join(folder, "made.txt"), "utf8")).toBe("a\u{1b}[2Jb\u{202e}c");
    await terminal.press("Down", "u");
    await terminal.shows(/Add to the budget of scout/u);
    await terminal.type("a lot");
    await terminal.press("Enter");
    await terminal.shows(/invalid amount "a lot": expected dollars/u);
    await terminal.press("u");
    await terminal.shows(/Add to the budget of scout/u);
    await terminal.type("0.25");
    await terminal.press("Enter");
    await terminal.shows(/scout .*of \$0\.7500[^]*Added \$0\.25 to scout\./u);
    await terminal.resize(200, 50);
    await terminal.shows(/STATUS +NOW +MODEL[^]*Money by agent[^]*Inbox: nothing waits/u);
    await terminal.press("s");
    await terminal.shows(/Tell scout/u);
    await terminal.type("be brief");
    await terminal.press("Enter");
    await terminal.shows(/Sent to scout\./u);
    await terminal.press("p");
    await terminal.shows(/Paused · [^]*p resume/u);
    await terminal.press("p");
    await terminal.shows(/Running · [^]*p pause/u);
    await terminal.press("c");
    await terminal.shows(/a {2}Only scout[^]*r {2}The whole run/u);
    await terminal.press("r");
    await terminal.shows(/Why\?/u);
    await terminal.type("too slow");
    await terminal.press("Enter");
    await terminal.shows(/Cancelled · [^]*– scout .*cancelled by you: too slow/u);
    const events = await fetch(`${server.link.origin}/api/runs/${run.runId}/events?types=run_steer`);
    expect(await events.text()).toMatch(/"input":"be brief"/u);
    await terminal.press("q");
    await terminal.shows(/ended 0/u, { lacks: /Money|Inbox|scout/u });
    await terminal.type("echo $((6 * 7)) echoed");
    await terminal.press("Enter");
    await terminal.shows(/^42 echoed/mu);
    await server.stop("SIGTERM");
  });

  test("reeve watch with --url survives its server and a resize, and closes a question that was answered elsewhere", async () => {
    const { folder, variables } = await companyFolder();
    const first = await serve(folder, variables, "--no-token");
    const { run } = await post(`${first.link.origin}/api/runs`, { agent: "lead", input: "Go" });
    const terminal = await openTerminal({
      size: "80x24",
      cwd: folder,
      env: { ...variables, NO_COLOR: "1" },
    });
    await terminal.reeve("watch", run.runId.slice(0, 12), "--url", first.link.origin);
    await terminal.shows(/\? scout .*waits for you/u);
    await first.stop("SIGKILL");
    await terminal.shows(/The server does not answer/u);
    const second = await serve(folder, variables, "--no-token", "--port", first.link.port);
    await terminal.lacks(/does not answer/u);
    await terminal.resize(1, 1);
    await terminal.resize(20, 5);
    await terminal.shows(/^› ◌ lead/mu);
    await terminal.resize(120, 30);
    await terminal.shows(/TIME[^]*\? scout .*waits for you: write/u);
    const painted = (await terminal.screen({ colours: true })).replaceAll("\u{1b}", "ESC");
    expect(painted).not.toMatch(/ESC\[(?:1|2|3[0-7]|9[0-7])m/u);
    await terminal.press("Escape");
    await terminal.shows(/─ Runs ─[^]*Inbox: 1 waits for you/u);
    await terminal.press("a");
    await terminal.shows(/→ y {2}Yes/u);
    const asked = await fetch(`${second.link.origin}/api/runs/${run.runId}/approvals`);
    const { approvals } = (await asked.json()) as { approvals: { approvalId: string }[] };
    const decision = { approvalId: approvals[0]?.approvalId, decision: "denied", reason: "no" };
    await post(`${second.link.origin}/api/runs/${run.runId}/decide`, decision);
    await terminal.shows(/The question was answered elsewhere\./u);
    await terminal.press("Enter");
    await terminal.shows(/● scout .*calls gpt-4o/u);
    process.kill(await terminal.processId(), "SIGTERM");
    await terminal.shows(/ended 0/u);
    await second.stop("SIGTERM");
  });
});

describe.skipIf(lacksTmux)("reeve watch beside reeve chat", () => {
  test("a person answers the question of a chat in reeve watch, steers and cancels, and Ctrl+T in the chat shows the same tree", async () => {
    const { folder, url, asked } = await setUp((request) =>
      request === 1 ? { tool: "write", input: { path: "made.txt", content: "one" } } : undefined,
    );
    const place = { cwd: folder, env: env(url) };
    const chat = await openTerminal({ size: "80x24", ...place });
    await chat.reeve("chat", "--tools", "all", "--sandbox", "off");
    await chat.shows(/gpt-4o/u);
    await chat.submit("Write a file");
    await chat.shows(/→ y {2}Yes/u);
    const watch = await openTerminal({ size: "200x50", ...place });
    await watch.reeve("watch");
    await watch.shows(/› \? assistant {2}Write a file +Waits for you/u);
    await watch.press("Enter");
    await watch.shows(
      /STATUS +NOW +MODEL[^]*› \? assistant +▪ +Waits for you +waits for you: write[^]*Money by agent/u,
    );
    await watch.press("a");
    await watch.shows(/→ y {2}Yes/u);
    await watch.press("y");
    await asked(2);
    // The question that was answered elsewhere disappears.
    await chat.lacks(/→ y {2}Yes/u);
    await watch.press("Enter");
    await watch.shows(/─ assistant ─[^]*❯ Write a file[^]*✓ write made\.txt/u);
    await watch.press("Escape");
    await watch.shows(/● assistant +▪ +Running +calls gpt-4o/u);
    await watch.press("s");
    await watch.shows(/Tell assistant/u);
    await watch.type("be brief");
    await watch.press("Enter");
    await chat.shows(/↳ next turn: be brief/u);
    await chat.press("C-t");
    await chat.shows(/AGENT +SEAT +NOW[^]*› ● assistant +▪ +calls gpt-4o/u);
    await chat.press("Escape");
    await chat.lacks(/AGENT +SEAT/u);
    await watch.press("c");
    await watch.shows(/r {2}The whole run/u);
    await watch.press("r");
    await watch.shows(/Why\?/u);
    await watch.type("enough");
    await watch.press("Enter");
    await watch.shows(/Cancelled · [^]*cancelled by you: enough/u);
    await chat.shows(/stopped it: enough/u, { lacks: /→ y {2}Yes/u });
    await watch.press("q");
    await watch.shows(/ended 0/u);
  });
});

test("reeve watch --plain prints a line for each agent and its change, and ends with the run", async () => {
  const { folder, run } = await setUp(() => ({ text: "Done \u{202e} it." }));
  await run("Go");
  const place = { cwd: folder };
  const [line = ""] = (await reeve(["ps", "--all"], place)).out;
  const runId = line.split(" ")[0] ?? "";
  const { code, out } = await reeveProcess(["watch", runId.slice(0, 10), "--plain"], place);
  expect(out).toEqual([
    `${runId}: Go`,
    String.raw`assistant: Done: Done \u202e it.; $0.0035, turns 1`,
    "The run: Done",
    expect.stringMatching(/^\$0\.0035 spent · \$0\.0000 reserved/u),
  ]);
  expect(code).toBe(0);
  const missing = await reeve(["watch", "run_no", "--plain"], place);
  expect(missing.talk).toMatch(/run run_no not found in sqlite:/u);
  expect(missing.code).toBe(3);
});

test("reeve watch without a terminal, or with TERM=dumb, names the commands that print lines", async () => {
  const { code, talk } = await reeve(["watch"]);
  expect(talk).toMatch(
    /there is no terminal to draw on; use reeve watch --plain .* reeve ps .* reeve logs -f RUN/u,
  );
  expect(code).toBe(2);
  const dumb = { ...silent, canAsk: true, isWatched: true, env: { TERM: "dumb" } };
  await expect(watchCommand(undefined, { store: "sqlite:absent" }, dumb)).rejects.toThrow(/TERM is dumb/u);
  const bad = await reeve(["watch", "--plain", "--url", "localhost:1"]);
  expect(bad.talk).toContain("expected the address of a server");
  expect(bad.code).toBe(2);
});

test("reeve watch of a server that does not answer ends with code 7 with and without --plain, and names the address", async () => {
  const url = "http://127.0.0.1:1";
  const { code, talk } = await reeve(["watch", "--plain", "--url", url]);
  expect([code, talk]).toEqual([7, expect.stringContaining(`the server at ${url} does not answer`)]);
  const terminal = { ...silent, canAsk: true, isWatched: true };
  const watched = watchCommand(undefined, { store: "sqlite:absent", url }, terminal);
  await expect(watched).rejects.toMatchObject({ code: "engine_unavailable" });
});

test("reeve watch --plain ends when its lines are no longer read", async () => {
  let closed: AbortSignal | undefined;
  const opened = Promise.withResolvers<void>();
  const client = new RouteClient({
    url: "http://127.0.0.1:1",
    fetch: async ({ signal }) => {
      closed = signal;
      opened.resolve();
      return new Response(new ReadableStream());
    },
  });
  const watched = plainWatch({ client, terminal: silent, place: "here", runId: undefined });
  await opened.promise;
  process.stdout.emit("close");
  expect(await watched).toBe("ok");
  expect(closed?.aborted).toBe(true);
});

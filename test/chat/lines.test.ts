import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { RouteClient } from "../../src/surfaces/client/route-client.ts";
import { Conversation } from "../../src/surfaces/cli/chat/client/conversation.ts";
import type { FrontOptions } from "../../src/surfaces/cli/chat/front/desk.ts";
import { LineReader, other } from "../../src/surfaces/cli/chat/front/line-reader.ts";
import { plainChat } from "../../src/surfaces/cli/chat/front/plain.ts";
import { env, setUp } from "../surfaces/cli/model-server.ts";
import { main, reeve } from "../surfaces/cli/reeve-process.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

test("a person may choose model, thinking level and name in a chat before the first message, and the first run uses them", async () => {
  const { folder, url, requests } = await setUp(() => ({ text: "Hello." }));
  const said = await reeve(["chat", "--plain"], {
    cwd: folder,
    env: env(url),
    input: "/model openai-compatible/gpt-4.1\n/thinking low\n/name Lamps\nHello\n/sessions Lamps\n",
  });
  expect([said.code, said.out, said.talk]).toEqual([
    0,
    ["Hello."],
    expect.stringMatching(/\* ses_.* Lamps/u),
  ]);
  expect(requests).toMatchObject([{ model: "gpt-4.1", reasoning_effort: "low" }]);
});

test("a chat in lines ends with the exit code of the first run that failed, and /continue makes it good", async () => {
  const { folder, url } = await setUp((request) => (request === 1 ? { error: 401 } : { text: "Hello." }));
  const place = { cwd: folder, env: env(url) };
  const failed = await reeve(["chat", "--plain"], { ...place, input: "One\nTwo\n" });
  expect([failed.code, failed.out]).toEqual([10, ["Hello."]]);
  expect(failed.talk).not.toMatch(/does not exist/u);
  const next = await setUp((request) => (request === 1 ? { error: 401 } : { text: "Hello." }));
  const again = { cwd: next.folder, env: env(next.url), input: "One\n/continue\n" };
  expect(await reeve(["chat", "--plain"], again)).toMatchObject({ code: 0, out: ["Hello."] });
});

test("a chat in lines resumes by the start of a session id, ends with 3 if it names none, and shows its profile's memory", async () => {
  const { folder, url } = await setUp(() => ({ text: "Hello." }));
  const home = join(folder, "home");
  await mkdir(join(home, "profiles/work"), { recursive: true });
  await writeFile(join(home, "profiles/work/MEMORY.md"), "The lamp is at the door.\n");
  const mcp = { mcpServers: { lamps: { command: "absent-program" } } };
  await writeFile(join(home, "profiles/work/mcp.json"), JSON.stringify(mcp));
  const place = { cwd: folder, env: { ...env(url), REEVE_HOME: home } };
  const first = await reeve(["chat", "--plain"], { ...place, input: "One\n" });
  const sessionId = /session (?<id>ses_\S+)/u.exec(first.talk)?.groups?.["id"] ?? "";
  const second = await reeve(["chat", "--plain", "--session", sessionId.slice(0, -3), "--profile", "work"], {
    ...place,
    input: "/resume ses_absent\n/memory\n/mcp\n/export -x.jsonl\nTwo\n",
  });
  expect([second.code, second.talk]).toEqual([3, expect.stringContaining(`session ${sessionId}`)]);
  expect(second.talk).toMatch(/session ses_absent does not exist/u);
  expect(second.talk).toMatch(/MEMORY\.md\n.*The lamp is at the door\./u);
  expect(second.talk).toMatch(/lamps/u);
  expect(second.talk).toMatch(/does not begin with "-"/u);
});

test.for([
  { mode: [], prompts: ["One\n", "Two\n", "Three\n"] },
  {
    mode: ["--mode", "rpc"],
    prompts: ["One", "Two"].map((input) => `${JSON.stringify({ type: "prompt", input })}\n`),
  },
])("a chat $mode whose stdout is closed sends nothing more and ends", async ({ mode, prompts }) => {
  const { folder, url, requests } = await setUp(() => ({ text: "Hello." }));
  const child = spawn(process.execPath, [main, "chat", "--plain", ...mode], {
    cwd: folder,
    env: { ...process.env, ...env(url) },
    stdio: ["pipe", "pipe", "ignore"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  child.stdin.on("error", () => undefined);
  child.stdout.destroy();
  await once(child.stdout, "close");
  // Stdin stays open.
  child.stdin.write(prompts.join(""));
  await once(child, "exit");
  expect(requests.length).toBeLessThanOrEqual(1);
});

test.skipIf(lacksTmux)(
  "a person at a terminal without a cursor talks in lines, and the output of a command goes to the model",
  async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "Seen." }));
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: env(url) });
    await terminal.type("export TERM=dumb");
    await terminal.press("Enter");
    await terminal.reeve("chat");
    await terminal.shows(/^> $|^>$/mu);
    await terminal.type("!echo from the shell");
    await terminal.press("Enter");
    await terminal.shows(/\$ echo from the shell\n +from the shell/u);
    await terminal.type("Look");
    await terminal.press("Enter");
    await terminal.shows(/Seen\.\n/u);
    expect(JSON.stringify(requests[0])).toContain(String.raw`$ echo from the shell\nfrom the shell\n\nLook`);
    await terminal.press("C-d");
    await terminal.shows(/session ses_\S+\s+ended 0/u);
  },
);

test("chat commands that need no choice answer in lines, and a wrong command says what is expected", async () => {
  const { folder, url } = await setUp(() => ({ text: "Seen." }));
  const commands = [
    "/budget",
    "/copy",
    "Look",
    "/help",
    "/keys",
    "/skills",
    "/cost",
    "/budget",
    "/context",
    "/copy",
    "/theme dark",
    "/reload",
    "/sessions",
    "/agent assistant",
    "/memory",
    "/thinking loud",
    "/model gpt-4o",
    "/top-up much",
    "/agent absent",
    "/export notes.txt",
    "/no-such-command",
    "/quit",
    "Never sent",
  ];
  const said = await reeve(["chat", "--plain"], {
    cwd: folder,
    env: { ...env(url), REEVE_HOME: join(folder, "home") },
    input: `${commands.join("\n")}\n`,
  });
  expect(said.out).toEqual(["Seen."]);
  for (const words of [
    /No run of this conversation was followed yet[^]*There is no answer to copy yet/u,
    /\/top-up USD \| N turns/u,
    /ctrl\+t/iu,
    /The agent has no skills, prompt templates or commands of extensions/u,
    /assistant {2}\S+gpt-4o {2}1 calls {2}1,100 tokens[^]*1 runs of this conversation/u,
    /turns {3}at most/u,
    /tokens of 128,000/u,
    /Lines have no colours/u,
    /The files of the workspace were read again/u,
    /\* ses_\S+ {2}.* ago {2}Look/u,
    /There is no MEMORY\.md or USER\.md in/u,
    /invalid level loud: expected one of/u,
    /invalid model "gpt-4o": expected provider\/id, such as .*; \/model alone lists the models/u,
    /no run of this conversation was followed yet/u,
    /absent/u,
    /expected a name that ends with \.jsonl or \.html/u,
    /there is no prompt template \/no-such-command/u,
  ])
    expect(said.talk).toMatch(words);
  // The first line that was refused.
  expect(said.code).toBe(2);
});

test("a reader of lines splits at line feeds only, joins pieces, and yields a last line without a line feed", async () => {
  const source = new PassThrough();
  const lines = new LineReader(source);
  lines.open();
  const all = Buffer.from(`{"a":"\u2028\u2029\u0085"}\r\n\none\rtwo\n${"x\n".repeat(3_000)}end`);
  // A piece may end within a character.
  for (const [from, to] of [
    [0, 7],
    [7, 20],
    [20, all.length],
  ])
    source.write(all.subarray(from, to));
  source.end();
  const read: unknown[] = [];
  for (let line = await lines.next(); line !== undefined; line = await lines.next()) read.push(line);
  expect(read).toEqual([
    '{"a":"\u2028\u2029\u0085"}',
    "",
    "one\rtwo",
    ...Array<string>(3_000).fill("x"),
    "end",
  ]);
});

test("a reader of lines stops its wait when another event happens, and drops unread lines when it is closed", async () => {
  const source = new PassThrough();
  const lines = new LineReader(source);
  lines.open();
  let isAsked = false;
  const waiting = lines.next(() => isAsked);
  lines.wake();
  isAsked = true;
  lines.wake();
  expect(await waiting).toBe(other);
  source.write("one\ntwo\n");
  expect(await lines.next()).toBe("one");
  lines.close();
  expect(await lines.next()).toBeUndefined();
  expect(source.listenerCount("data")).toBe(0);
});

test("waiting for changes of a chat conversation leaves no listener behind", async () => {
  const client = new RouteClient({ url: "http://127.0.0.1:1", fetch: async () => Response.json({}) });
  const conversation = new Conversation({
    client,
    agent: "assistant",
    onChange: () => undefined,
    onOpen: () => undefined,
  });
  const { signal } = new AbortController();
  for (let change = 0; change < 5; change++) {
    const changed = conversation.untilChange(signal);
    conversation.startNew();
    await changed;
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

/** A chat in lines whose server has started a run and answers nothing more. */
function stuckChat(answer: () => Promise<Response>) {
  const interrupts = new Set<() => void>();
  const requests: string[] = [];
  const client = new RouteClient({
    url: "http://127.0.0.1:1",
    fetch: async ({ method, url }) => {
      const request = `${method} ${new URL(url).pathname}`;
      requests.push(request);
      const run = { runId: "run_1", sessionId: "ses_1", kind: "invocation" };
      return request === "POST /api/runs" ? Response.json({ run, isSteered: false }) : answer();
    },
  });
  const changes = new EventTarget();
  const made = Promise.withResolvers<Conversation>();
  const ended = plainChat({
    client,
    server: { place: { url: "", fetch }, local: undefined, drive: () => undefined, close: async () => {} },
    terminal: {
      out: async () => undefined,
      put: () => undefined,
      say: () => undefined,
      isWatched: false,
      canAsk: false,
      ask: async () => undefined,
      input: async () => "",
      onInterrupt: (callback) => {
        interrupts.add(callback);
        return () => void interrupts.delete(callback);
      },
      env: {},
    },
    model: undefined,
    converse: (onChange, onItem) => {
      const conversation = new Conversation({
        client,
        agent: "assistant",
        onChange: () => {
          onChange();
          changes.dispatchEvent(new Event("change"));
        },
        ...(onItem !== undefined && { onItem }),
        onOpen: () => undefined,
      });
      made.resolve(conversation);
      return conversation;
    },
    begin: (opened) => opened.send("Go"),
  } satisfies FrontOptions);
  return {
    ended,
    requests,
    interrupt: () => [...interrupts].forEach((callback) => callback()),
    until: async (holds: (conversation: Conversation) => boolean) => {
      const conversation = await made.promise;
      while (!holds(conversation)) await once(changes, "change");
    },
  };
}

test("an interrupt ends a chat in lines whose server no longer answers", async () => {
  const chat = stuckChat(() => Promise.reject(new Error("refused")));
  await chat.until(({ lostAt }) => lostAt !== undefined);
  chat.interrupt();
  expect(await chat.ended).toBe("busy");
  expect(chat.requests).not.toContain("POST /api/runs/run_1/cancel");
});

test("the second interrupt ends a chat in lines whose server does not answer the first", async () => {
  const chat = stuckChat(() => new Promise(() => undefined));
  await chat.until(({ model }) => model.isWorking);
  chat.interrupt();
  await expect.poll(() => chat.requests).toContain("POST /api/runs/run_1/cancel");
  chat.interrupt();
  expect(await chat.ended).toBe("busy");
});

test("a person in a chat in lines sees the arguments to edit, and an empty line goes back to the question", async () => {
  const { folder, url } = await setUp((request) =>
    request === 1
      ? { tool: "write", input: { path: "made.txt", content: "as asked" } }
      : { text: "Written." },
  );
  const edited = { path: "made.txt", content: "as edited" };
  const said = await reeve(["chat", "--plain", "--tools", "all", "--sandbox", "off"], {
    cwd: folder,
    env: env(url),
    input: `Write\ne\n\ne\n${JSON.stringify(edited)}\n`,
  });
  expect([said.code, said.out]).toEqual([0, ["Written."]]);
  expect(said.talk).toMatch(
    /The arguments as JSON:\n\{"path":"made\.txt","content":"as asked"\}\n[^]*goes back\.\n[^]*e\) Edit the arguments/u,
  );
  expect(await readFile(join(folder, "made.txt"), "utf8")).toBe("as edited");
});

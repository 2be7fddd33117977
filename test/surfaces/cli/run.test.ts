import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { openRuntime } from "../../../src/entries/index.ts";
import { agentIdOf, formatSessionId, type HostedAgent, type RunRecord } from "../../../src/kernel/index.ts";
import {
  inFolder,
  openRunWorkspace,
  runAgent,
  runResolver,
  type RunResolverOptions,
} from "../../../src/surfaces/cli/setup/run-agent.ts";
import { idleEngine } from "../../../src/surfaces/cli/setup/idle-engine.ts";
import { toMetadata } from "../../../src/surfaces/cli/setup/run-settings.ts";
import { env, setUp, type Script } from "./model-server.ts";
import { acceptStore } from "../../../src/surfaces/cli/setup/own-store.ts";
import { main, reeve, reeveProcess } from "./reeve-process.ts";

const looksThenAnswers: Script = (request) =>
  request === 1 ? { tool: "read", input: { path: "notes.txt" } } : { text: "It is green." };

describe("reeve run", () => {
  test("reeve run prints the answer on stdout, and its actions and cost on stderr", async () => {
    const { run, requests } = await setUp(looksThenAnswers);
    const { code, out, talk } = await run("Which colour is the lamp?");
    expect({ code, out }).toEqual({ code: 0, out: ["It is green."] });
    expect(talk).toMatch(/^run_\S+ of session ses_\S+\n/u);
    expect(talk).toContain('  read {"path":"notes.txt"}\n  = read: The lamp is green.\n');
    expect(talk).toMatch(/completed · 2 turns · 2,200 tokens · .* · run_/);
    expect(JSON.stringify(requests[1])).toContain("The lamp is green.");
  });

  test("reeve run --mode json prints every event as a line and the result as the last line", async () => {
    const { run } = await setUp(looksThenAnswers);
    const { code, out } = await run("Which colour?", "--mode", "json");
    const lines = out.map(
      (line) => JSON.parse(line) as { type: string; seq?: number; status?: string; output?: string },
    );
    const seqs = lines.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
    expect(code).toBe(0);
    expect(seqs).toEqual(seqs.map((_, index) => index));
    expect(lines.map(({ type }) => type)).toContain("message_update");
    expect(lines.at(-1)).toMatchObject({ type: "result", status: "completed", output: "It is green." });
  });

  test("reeve run --continue continues the last conversation", async () => {
    const { run, requests } = await setUp((request) => ({ text: `answer ${request}` }));
    await run("first question");
    const { out } = await run("--continue", "second question");
    expect(out).toEqual(["answer 2"]);
    const said = JSON.stringify(requests[1]);
    expect(said.indexOf("first question")).toBeGreaterThan(0);
    expect(said.indexOf("answer 1")).toBeGreaterThan(said.indexOf("first question"));
  });

  test("reeve run with the argument - reads the end of the prompt from stdin", async () => {
    const { folder, url, requests } = await setUp(() => ({ text: "ok" }));
    const child = spawn(process.execPath, [main, "run", "Review", "-"], {
      cwd: folder,
      env: { ...process.env, ...env(url) },
    });
    child.stdin.end("the diff\n");
    const [code] = (await once(child, "exit")) as [number];
    expect(code).toBe(0);
    expect(JSON.stringify(requests[0])).toContain(String.raw`Review\n\nthe diff`);
  });

  test("reeve run exits with 11 when --max-turns is reached", async () => {
    const { run, requests } = await setUp(() => ({ tool: "ls", input: {} }));
    const { code, talk } = await run("Look", "--max-turns", "2");
    expect({ code, requests: requests.length }).toEqual({ code: 11, requests: 2 });
    expect(talk).toContain("max_turns");
  });

  test("reeve run prints a cut answer and exits with 17 when the model reaches its output limit", async () => {
    const { run, requests } = await setUp(() => ({ text: "It is gr", cut: true }));
    const { code, out, talk } = await run("Which colour?");
    expect({ code, out, requests: requests.length }).toEqual({ code: 17, out: ["It is gr"], requests: 1 });
    expect(talk).toContain("max_output");
  });

  test("reeve run stops at --max-tokens, and --resume with more tokens repeats no request", async () => {
    const { run, requests } = await setUp(looksThenAnswers, 8_000);
    const first = await run("Which colour? ".repeat(600), "--max-tokens", "15000", "--mode", "json");
    const { runId, status } = JSON.parse(first.out.at(-1) ?? "") as { runId: string; status: string };
    expect({ code: first.code, status }).toEqual({ code: 12, status: "budget_exhausted" });
    expect(requests).toHaveLength(1);
    const refused = await run("--resume", runId);
    expect(refused.code).toBe(2);
    expect(refused.talk).toContain("add to it with --max-tokens");
    const { code, out } = await run("--resume", runId, "--max-tokens", "100000");
    expect({ code, out }).toEqual({ code: 0, out: ["It is green."] });
    expect(requests).toHaveLength(2);
  });

  test("reeve run --resume repeats only the request in flight after the process was killed", async () => {
    let isKilled = false;
    const { folder, url, run, requests, asked } = await setUp((request) => {
      if (request === 1) return { tool: "read", input: { path: "notes.txt" } };
      return isKilled ? { text: "It is green." } : undefined;
    });
    // Two turns are enough: the request that was cut off is the second turn, and so is its repetition.
    const args = [main, "run", "Which colour?", "--mode", "json", "--max-turns", "2"];
    const child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env(url) } });
    let said = "";
    child.stdout.on("data", (piece) => (said += String(piece)));
    await asked(2);
    child.kill("SIGKILL");
    await once(child, "exit");
    isKilled = true;
    const runId = /run_[\w-]+/.exec(said)?.[0] ?? "";
    const { code, out, talk } = await run("--resume", runId);
    expect({ code, out }).toEqual({ code: 0, out: ["It is green."] });
    expect(talk).toContain("recorded answers are not requested again");
    expect(requests).toHaveLength(3);
  });

  test("a worker of the folder executes the run that a killed reeve run left, using the metadata of the run", async () => {
    let isKilled = false;
    const { folder, url, requests, asked } = await setUp((request) => {
      if (request === 1) return { tool: "read", input: { path: "notes.txt" } };
      return isKilled ? { text: "It is green." } : undefined;
    });
    for (const [name, value] of Object.entries(env(url))) vi.stubEnv(name, value);
    onTestFinished(() => void vi.unstubAllEnvs());
    const args = ["run", "Which colour?", "--mode", "json", "--instructions", "Answer in English."];
    const child = spawn(process.execPath, [main, ...args], {
      cwd: folder,
      env: { ...process.env, ...env(url) },
    });
    await asked(2);
    child.kill("SIGKILL");
    await once(child, "exit");
    isKilled = true;
    const store = `sqlite:${join(folder, ".reeve/reeve.db")}` as const;
    const isFree = async (accepts: RunResolverOptions["accepts"]): Promise<boolean> => {
      await using runtime = await openRuntime({ store });
      const asking = Promise.withResolvers<boolean>();
      runtime.register(
        runResolver({
          accepts: (run, settings) => {
            const isAccepted = accepts(run, settings);
            asking.resolve(!isAccepted);
            return isAccepted;
          },
        }),
      );
      return await asking.promise;
    };
    expect(await isFree(inFolder(join(folder, "elsewhere")))).toBe(true);
    await using worker = await openRuntime({ store });
    worker.register(runResolver({ accepts: inFolder(folder), runs: worker }));
    const [left] = (await worker.list()).runs;
    expect(left).toMatchObject({
      title: "Which colour?",
      metadata: { "reeve.run": { tools: "read", root: folder, instructions: "Answer in English." } },
    });
    const result = await (await worker.find(left?.runId ?? ""))?.result();
    expect(result).toMatchObject({ status: "completed", output: "It is green." });
    expect(requests).toHaveLength(3);
    expect((await worker.list()).runs[0]?.recoveries).toBe(1);
  });

  test("reeve run denies a tool that changes files if no person can be asked, and allows it with --yes", async () => {
    const writes: Script = (request) =>
      request % 2 === 1 ? { tool: "write", input: { path: "new.txt", content: "hello" } } : { text: "done" };
    const { run, folder, requests } = await setUp(writes);
    const denied = await run("Write it", "--tools", "all", "--sandbox", "warn");
    expect(denied.code).toBe(0);
    expect(denied.talk).toContain("no terminal to ask");
    expect(JSON.stringify(requests[1])).toContain("[denied:");
    await expect(readFile(join(folder, "new.txt"), "utf8")).rejects.toThrow("ENOENT");
    const { code } = await run("Write it", "--tools", "all", "--sandbox", "warn", "--yes");
    expect(code).toBe(0);
    expect(await readFile(join(folder, "new.txt"), "utf8")).toBe("hello");
  });

  test.for([
    { args: ["  "], says: "missing prompt" },
    {
      args: ["x", "--sandbox", "maybe"],
      says: "invalid --sandbox maybe: expected one of enforce, warn, off",
    },
    { args: ["x", "--max-turns", "0"], says: "invalid --max-turns 0: expected an integer from 1" },
    {
      args: ["x", "--max-budget-usd", "lots"],
      says: "invalid --max-budget-usd lots: expected a number above 0",
    },
    { args: ["x", "--mode", "xml"], says: "invalid --mode xml: expected text or json" },
    { args: ["x", "--tools", "some"], says: "invalid --tools some: expected one of none, read, all" },
    { args: ["x", "--model", "unheard/x"], says: 'unknown provider "unheard"' },
    { args: ["x", "--session", "../up"], says: "invalid session id" },
    { args: ["x", "--resume", "run_1"], says: "--resume takes no prompt" },
    { args: ["--resume", "what"], says: "invalid run id" },
    {
      args: ["--resume", "run_1", "--model", "a/b", "--root", "."],
      says: "remove --model, --root",
    },
    { args: ["x", "--session", "a", "--continue"], says: "cannot be combined" },
    { args: ["x", "--root", "nowhere"], says: "invalid --root nowhere: the folder does not exist" },
    { args: [], says: "missing prompt" },
  ])("reeve run $args is refused and the error says: $says", async ({ args, says }) => {
    const { run, requests } = await setUp(() => ({ text: "never" }));
    const { code, out, talk } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(talk).toContain(says);
    expect(requests).toEqual([]);
  });

  test("reeve run --resume with an unknown run exits with 3", async () => {
    const { run } = await setUp(() => ({ text: "never" }));
    expect(await run("--resume", "run_7")).toMatchObject({ code: 3, out: [] });
  });

  test("reeve run --resume of another program's run says that only that program can continue it, and does not suggest trust", async () => {
    const { folder, run } = await setUp(() => ({ text: "never" }));
    const store = `sqlite:${join(folder, "program.db")}` as const;
    const runtime = await openRuntime({ store });
    const waits: HostedAgent = {
      id: agentIdOf("waits"),
      run: async (ctx) => void (await ctx.waitForSignal("go")),
    };
    const { runId } = await runtime.submit(waits, null);
    await runtime.close();
    const { code, talk } = await run("--resume", runId, "--store", store);
    expect([code, talk]).toEqual([
      2,
      expect.stringContaining(`${runId} was not started by reeve run, and only the program`),
    ]);
    expect(talk).not.toContain("reeve trust");
  });

  test("reeve run exits with 10 when the model fails permanently, and the run can be resumed", async () => {
    let works = false;
    const { folder, url, run } = await setUp(() => (works ? { text: "It works." } : undefined));
    const broken = createServer((_request, response) => {
      response.writeHead(401, { "content-type": "application/json" });
      response.end('{"error":{"message":"bad key"}}');
    });
    broken.listen(0, "127.0.0.1");
    await once(broken, "listening");
    onTestFinished(() => void broken.close());
    const at = `http://127.0.0.1:${(broken.address() as AddressInfo).port}/v1`;
    const failed = await reeve(["run", "Say it", "--mode", "json"], { cwd: folder, env: env(at) });
    expect(failed.code).toBe(10);
    const { runId } = JSON.parse(failed.out.at(-1) ?? "") as { runId: string };
    works = true;
    expect(await run("--resume", runId)).toMatchObject({ code: 0, out: ["It works."] });
    expect(url).toContain("127.0.0.1");
  });

  test("reeve run --resume --mode json prints the events of the resumed run", async () => {
    let works = false;
    const { run } = await setUp(() => (works ? { text: "It works." } : { error: 401 }));
    const failed = await run("Say it", "--mode", "json");
    const { runId } = JSON.parse(failed.out.at(-1) ?? "") as { runId: string };
    works = true;
    const { code, out } = await run("--resume", runId, "--mode", "json");
    const types = out.map((line) => (JSON.parse(line) as { type: string }).type);
    expect({ code, first: types[0], last: types.at(-1) }).toEqual({
      code: 0,
      first: "run_resume",
      last: "result",
    });
    expect(types).toContain("message_end");
  });

  test("reeve resume --drive executes a failed run in its own process and prints its answer, and takes one run only", async () => {
    let works = false;
    const { folder, url, run } = await setUp(() => (works ? { text: "It works." } : { error: 401 }));
    const failed = await run("Say it", "--mode", "json");
    const { runId } = JSON.parse(failed.out.at(-1) ?? "") as { runId: string };
    const resume = (...args: string[]): ReturnType<typeof reeve> =>
      reeve(["resume", ...args], { cwd: folder, env: env(url) });
    for (const args of [[runId, "--yes"], [], [runId, runId], ["--where", "status=failed"]]) {
      const refused = await resume("--drive", ...args);
      expect([refused.code, refused.talk]).toEqual([2, expect.stringContaining("--drive takes one RUN")]);
    }
    expect(await resume("--drive", runId)).toMatchObject({ code: 10, out: [] });
    works = true;
    expect(await resume("--drive", runId.slice(0, -2))).toMatchObject({ code: 0, out: ["It works."] });
    const { code, out } = await resume("--drive", "--json", runId);
    expect([code, JSON.parse(out.at(-1) ?? "")]).toEqual([
      0,
      expect.objectContaining({ type: "result", output: "It works." }),
    ]);
  });

  test.for([
    { args: ["--yes"], written: true },
    { args: [], written: false },
  ])(
    "reeve run --resume $args decides an approval that was requested before the process died",
    async ({ args, written }) => {
      const { folder, url, run, requests } = await setUp((request) =>
        request === 1 ? { tool: "write", input: { path: "new.txt", content: "hello" } } : { text: "done" },
      );
      const runId = await leftAsking(folder, url);
      expect(requests).toHaveLength(1);
      const { code, out } = await run("--resume", runId, ...args);
      expect({ code, out }).toEqual({ code: 0, out: ["done"] });
      expect(requests).toHaveLength(2);
      expect(existsSync(join(folder, "new.txt"))).toBe(written);
    },
  );

  test("S5: a prompt to a session whose run waits for approval steers that run, which calls the model again", async () => {
    const { folder, url, run, requests } = await setUp((request) =>
      request === 1 ? { tool: "write", input: { path: "new.txt", content: "hello" } } : { text: "done" },
    );
    const runId = await leftAsking(folder, url);
    const { code, out } = await run(
      "--session",
      "ses_left",
      "In capitals",
      "--tools",
      "all",
      "--sandbox",
      "warn",
      "--mode",
      "json",
    );
    const lines = out.map((line) => JSON.parse(line) as { type: string; runId?: string });
    expect({ code, first: lines[0]?.type === "run_start" }).toEqual({ code: 0, first: false });
    expect(lines.at(-1)).toMatchObject({ type: "result", runId, output: "done" });
    expect(JSON.stringify(requests[1])).toContain("In capitals");
  });

  test("reeve run --continue refuses a session whose run has not ended and names --resume", async () => {
    const { folder, url, run, requests, asked } = await setUp(() => undefined);
    const args = [main, "run", "Which colour?"];
    const child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env(url) } });
    await asked(1);
    child.kill("SIGKILL");
    await once(child, "exit");
    const { code, talk } = await run("--continue", "And now?");
    expect(code).toBe(6);
    expect(talk).toMatch(/^reeve: (run_[\w-]+) of session .* has not ended; .* --resume \1\n$/);
    expect(requests).toHaveLength(1);
  });

  describe("reeve run with a compaction and a review after each run", () => {
    /** A project in which the conversation fills the context window, and each session is reviewed after one tool call. */
    const afterwards = async (script: Script) => {
      const { folder, url, ...rest } = await setUp(script, 121_000);
      const home = join(folder, "home");
      await mkdir(home);
      await writeFile(join(home, "settings.json"), '{ "memoryReviewEvery": 1 }');
      const variables = { ...env(url), REEVE_HOME: home };
      const run = (...args: string[]) => reeve(["run", ...args], { cwd: folder, env: variables });
      return { ...rest, folder, variables, run, store: `sqlite:${join(folder, ".reeve/reeve.db")}` as const };
    };
    const standing = async (store: `sqlite:${string}`): Promise<readonly string[]> => {
      await using runtime = await openRuntime({ store });
      return (await runtime.list()).runs.map(({ kind, status }) => `${kind} ${status}`).toSorted();
    };

    /** Removes the settings of reviews, as earlier versions stored them. */
    const forgetSettings = (path: string): void => {
      using database = new DatabaseSync(path);
      const { changes } = database
        .prepare(
          `UPDATE run_metadata SET body = json_remove(body, '$."reeve.run"') WHERE body ->> 'reviewer' IS NOT NULL`,
        )
        .run();
      expect(changes).toBe(1);
    };

    test("reeve run ends after the compaction and the review that follow its run", async () => {
      const { run, store } = await afterwards(looksThenAnswers);
      const { code, out, talk } = await run("Which colour?");
      expect({ code, out }).toEqual({ code: 0, out: ["It is green."] });
      expect(talk.match(/finishing run_\S+, which follows the run/gu)).toHaveLength(2);
      expect(await standing(store)).toEqual([
        "child completed",
        "compaction completed",
        "invocation completed",
      ]);
    });

    test.each([
      { what: "", forgets: false },
      { what: ", also a review that an earlier version stored without settings", forgets: true },
    ])(
      "a compaction or review that a process leaves is executed by a worker and by --continue$what",
      async ({ forgets }) => {
        let isKilled = false;
        const { run, store, folder, variables, asked } = await afterwards((request) =>
          request > 2 && !isKilled ? undefined : looksThenAnswers(request, {}),
        );
        const child = spawn(process.execPath, [main, "run", "Which colour?"], {
          cwd: folder,
          env: { ...process.env, ...variables },
        });
        await asked(3);
        child.kill("SIGKILL");
        await once(child, "exit");
        isKilled = true;
        if (forgets) forgetSettings(join(folder, ".reeve/reeve.db"));
        for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
        onTestFinished(() => void vi.unstubAllEnvs());
        {
          await using worker = await openRuntime({ store });
          worker.register(runResolver({ accepts: inFolder(folder), runs: worker }));
          const [review] = (await worker.list({ kind: "child" })).runs;
          expect((await (await worker.find(review?.runId ?? ""))?.result())?.status).toBe("completed");
        }
        {
          await using desk = await openRuntime({ store, engine: idleEngine });
          const [invocation] = (await desk.list({ kind: "invocation" })).runs;
          const resolver = runResolver({ accepts: () => true });
          const agent = await resolver.resolve(invocation as RunRecord);
          if (agent !== undefined) desk.register(agent);
          const left = await desk.sessions.compact(invocation?.sessionId ?? "");
          expect(await left.summary()).toMatchObject({ status: "pending", metadata: invocation?.metadata });
        }
        const { code, out } = await run("--continue", "And now?");
        expect({ code, out }).toEqual({ code: 0, out: ["It is green."] });
        expect(new Set(await standing(store))).toEqual(
          new Set(["child completed", "compaction completed", "invocation completed"]),
        );
      },
    );
  });

  test("reeve run --resume of a run that timed out asks for --timeout, and continues with the time that the option adds", async () => {
    let isSlow = true;
    const { run } = await setUp(() => (isSlow ? undefined : { text: "Green." }));
    const late = await run("Which colour?", "--timeout", "0.2", "--mode", "json");
    const { runId } = JSON.parse(late.out.at(-1) ?? "") as { runId: string };
    expect(late.code).toBe(13);
    const refused = await run("--resume", runId, "--max-tokens", "5");
    expect(refused.code).toBe(2);
    expect(refused.talk).toContain("has stopped at a limit (deadline exceeded); add to it with --timeout");
    isSlow = false;
    const { code, out } = await run("--resume", runId, "--timeout", "600");
    expect({ code, out }).toEqual({ code: 0, out: ["Green."] });
  });

  test.each([
    { what: "an unknown provider", name: "assistant/k", model: "bogus/x", says: 'unknown provider "bogus"' },
    { what: "an agent without a key", name: "assistant", model: "openai/gpt-5", says: "was not started by" },
  ])("reeve run --resume exits with 2 if its run has $what", async ({ name, model, says }) => {
    const { folder, run } = await setUp(() => undefined);
    await mkdir(join(folder, ".reeve"), { recursive: true });
    const store = `sqlite:${join(folder, ".reeve/reeve.db")}` as const;
    const runtime = await openRuntime({ store });
    const agent: HostedAgent = { id: agentIdOf(name), run: async (ctx) => ctx.waitForSignal("go") };
    const metadata = toMetadata({ model, tools: "none", root: folder });
    const { runId } = await runtime.submit(agent, "x", { metadata });
    await runtime.close();
    await acceptStore(store);
    const { code, talk } = await run("--resume", runId);
    expect(code).toBe(2);
    expect(talk).toContain(says);
  });

  test("reeve run completes when stderr is closed", async () => {
    const { folder, url, requests } = await setUp(looksThenAnswers);
    const args = [main, "run", "Which colour?"];
    const child = spawn(process.execPath, args, { cwd: folder, env: { ...process.env, ...env(url) } });
    child.stderr.destroy();
    let said = "";
    child.stdout.on("data", (piece) => (said += String(piece)));
    const [code] = (await once(child, "close")) as [number];
    expect({ code, said, requests: requests.length }).toEqual({
      code: 0,
      said: "It is green.\n",
      requests: 2,
    });
  });
});

/** Creates a run that is suspended while it waits for a person's approval, and returns its id. */
async function leftAsking(folder: string, baseUrl: string): Promise<string> {
  await mkdir(join(folder, ".reeve"), { recursive: true });
  const store = `sqlite:${join(folder, ".reeve/reeve.db")}` as const;
  const runtime = await openRuntime({ store, suspendAfterMs: 0 });
  const settings = {
    model: "openai-compatible/gpt-4o",
    baseUrl,
    tools: "all",
    root: folder,
    sandbox: "warn",
  } as const;
  const sessionId = formatSessionId("left");
  await using workspace = await openRunWorkspace(settings);
  const agent = await runAgent(workspace, settings, sessionId);
  const run = await agent.submit("Write it", {
    runtime,
    userId: "person",
    sessionId,
    metadata: toMetadata(settings),
    streaming: true,
  });
  const status = async (): Promise<unknown> => (await runtime.list({ sessionId })).runs[0]?.status;
  await expect.poll(status).toBe("waiting");
  await runtime.close();
  await acceptStore(store);
  return run.runId;
}

describe("reeve run with an unhandled rejection", () => {
  test("reeve run prints a promise rejection that no code handles, and the run completes", async () => {
    const { folder, url } = await setUp(() => ({ text: "Green." }));
    const careless = `const { fetch: send } = globalThis;
      globalThis.fetch = (...request) => {
        Promise.reject(new Error("a careless tool\u001b[2J"));
        return send(...request);
      };`;
    await writeFile(join(folder, "careless.mjs"), careless);
    const { code, out, talk } = await reeveProcess(["run", "Which colour?"], {
      cwd: folder,
      env: { ...env(url), NODE_OPTIONS: `--import ${join(folder, "careless.mjs")}` },
    });
    expect(talk).toContain(
      "reeve: a promise was rejected and no code handled it: Error: a careless tool\\u001b[2J",
    );
    expect([code, out.join("\n")]).toEqual([0, "Green."]);
  });
});

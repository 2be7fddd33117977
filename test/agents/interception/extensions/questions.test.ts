import { describe, expect, test } from "vitest";
import { Agent, openRuntime, tool, type Extension } from "../../../../src/entries/index.ts";
import type { ExtensionApi, ExtensionContext, RunHandle, Runtime } from "../../../../src/kernel/index.ts";
import { FakeClock, scriptedModel } from "../../../../src/testing/index.ts";
import { findRun } from "../../../runtime/find-run.ts";
import { twoStores } from "../../../runtime/two-stores.ts";

const extension = (name: string, setup: (api: ExtensionApi) => void): Extension => ({ name, setup });

/** Waits until the run asks a person, and returns the question. */
async function asked(run: Pick<RunHandle, "untilPersonIsNeeded">) {
  const [question] = await run.untilPersonIsNeeded();
  if (question === undefined) throw new Error("no one is asked");
  return question;
}

function asking(log: string[], ask: (ctx: ExtensionContext) => Promise<unknown>): Agent {
  const handler = async (_event: unknown, ctx: ExtensionContext): Promise<void> => {
    log.push("started");
    log.push(JSON.stringify(await ask(ctx)) ?? "undefined");
  };
  return new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [extension("asker", (api) => api.on("input", handler))],
  });
}

describe.each(twoStores)("questions of extensions in a %s store", (_name, prepare) => {
  test("untilPersonIsNeeded() waits for the next question if the one before was just answered", async () => {
    const store = await (await prepare())();
    await using runtime = await openRuntime({ store });
    const log: string[] = [];
    const agent = asking(log, async ({ ui }) => [await ui.confirm("Sure?"), await ui.input("Name?")]);
    const run = await agent.submit("go", { runtime });
    const first = await asked(run);
    await run.approve(first.approvalId, { decision: "approved" });
    const second = await asked(run);
    expect(second).toMatchObject({ kind: "input" });
    await run.approve(second.approvalId, { decision: "approved", input: "Ada" });
    expect(await run.result()).toMatchObject({ output: "Done." });
    expect(log).toEqual(["started", '[true,"Ada"]']);
  });

  test("S4: a setup that fails only in the process that resumes a run is recorded in the log of the run", async () => {
    const open = await prepare();
    const agent = (keyed: boolean): Agent => {
      const ask = extension("asker", (api) =>
        api.on("input", async (_event, { ui }) => void (await ui.confirm("Sure?"))),
      );
      const needsKey = extension("key", () => {
        if (!keyed) throw new Error("no key");
      });
      return new Agent({ name: "scout", model: scriptedModel(["Done."]), extensions: [ask, needsKey] });
    };
    let runtime: Runtime = await openRuntime({ store: await open() });
    const submitted = await agent(true).submit("go", { runtime });
    const question = await asked(submitted);
    await runtime.close();
    runtime = await openRuntime({ store: await open() });
    runtime.register(agent(false));
    const run = await findRun(runtime, submitted);
    await run.approve(question.approvalId, { decision: "approved" });
    expect(await run.result()).toMatchObject({ status: "completed", output: "Done." });
    const failures: unknown[] = [];
    for await (const event of run.events({ types: ["extension_error"] }))
      if (event.type === "extension_error") failures.push(event.data);
    expect(failures).toMatchObject([{ extension: "key", event: "setup", failure: { message: "no key" } }]);
    await runtime.close();
  });

  test("a question of an extension survives a restart, is listed with its kind and choices, and each answer is recorded once", async () => {
    const open = await prepare();
    const log: string[] = [];
    const agent = (): Agent => asking(log, ({ ui }) => ui.select("Which one?", ["a", "b"]));
    let runtime: Runtime = await openRuntime({ store: await open() });
    let run: RunHandle<unknown> = await agent().submit("go", { runtime });
    const question = await asked(run);
    expect(question).toMatchObject({
      kind: "select",
      toolName: "asker",
      input: { message: "Which one?", choices: ["a", "b"] },
    });
    await runtime.close();
    runtime = await openRuntime({ store: await open() });
    runtime.register(agent());
    const { approvals } = await runtime.approvals();
    expect(approvals).toMatchObject([{ kind: "select", approvalId: question.approvalId }]);
    run = await findRun(runtime, run);
    await expect(
      run.approve(question.approvalId, { decision: "approved", input: "c" }),
    ).rejects.toMatchObject({
      code: "invalid_argument",
    });
    await run.approve(question.approvalId, { decision: "approved", input: "b" });
    expect(await run.result()).toMatchObject({ status: "completed", output: "Done." });
    // The step was not recorded, so the second process runs the handler again and uses the recorded answer.
    expect(log).toEqual(["started", "started", '"b"']);
    await runtime.close();
  });
});

test.each([
  ["confirm", (ctx: ExtensionContext) => ctx.ui.confirm("Sure?"), { decision: "approved" }, "true"],
  ["confirm", (ctx: ExtensionContext) => ctx.ui.confirm("Sure?"), { decision: "denied" }, "false"],
  [
    "input",
    (ctx: ExtensionContext) => ctx.ui.input("Name?"),
    { decision: "approved", input: "Ann" },
    '"Ann"',
  ],
  ["input", (ctx: ExtensionContext) => ctx.ui.input("Name?"), { decision: "skipped" }, "undefined"],
] as const)(
  "ui.%s of an extension returns the answer of a person (%#)",
  async (kind, ask, decision, answer) => {
    const log: string[] = [];
    await using runtime = await openRuntime();
    const run = await asking(log, ask).submit("go", { runtime });
    const question = await asked(run);
    expect(question.kind).toBe(kind);
    await run.approve(question.approvalId, decision);
    await run.result();
    expect(log).toEqual(["started", answer]);
  },
);

test("the time limit of an extension excludes the wait for a person, but includes the time in which it hangs afterwards", async () => {
  const clock = new FakeClock();
  const agent = new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [
      extension("slow", (api) =>
        api.on("input", async (_event, { ui }) => {
          await ui.confirm("Sure?");
          await new Promise(() => {});
        }),
      ),
    ],
  });
  await using runtime = await openRuntime({ clock, suspendAfterMs: 1_000_000_000 });
  const run = await agent.submit("go", { runtime });
  const { approvalId } = await asked(run);
  await clock.advance(60_000);
  expect(runtime.extensionErrors()).toEqual([]);
  await run.approve(approvalId, { decision: "approved" });
  for await (const event of run.events({ types: ["approval_decision"] }))
    if (event.type === "approval_decision") break;
  await clock.advance(5_000);
  expect(await run.result()).toMatchObject({ status: "completed", output: "Done." });
  expect(runtime.extensionErrors()).toMatchObject([
    { failure: { message: "the handler of input of extension slow exceeded its time limit of 5000 ms" } },
  ]);
});

test("S5: an extension's navigation and waitForIdle inside an invocation throw agent_busy, and missing surfaces are unsupported", async () => {
  const codes: Record<string, string> = {};
  const agent = new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [
      extension("nav", (api) =>
        api.on("input", async (_event, ctx) => {
          const tries: Record<string, () => unknown> = {
            newSession: () => ctx.newSession(),
            fork: () => ctx.fork("x"),
            switchSession: () => ctx.switchSession("ses_other"),
            waitForIdle: () => ctx.waitForIdle(),
            runCompaction: () => ctx.runCompaction(),
            reload: () => ctx.reload(),
            shutdown: () => ctx.shutdown(),
          };
          for (const [name, attempt] of Object.entries(tries))
            try {
              await attempt();
              codes[name] = "none";
            } catch (error) {
              codes[name] = (error as { code: string }).code;
            }
          codes["isIdle"] = String(await ctx.isIdle());
          codes["hasPendingMessages"] = String(await ctx.hasPendingMessages());
        }),
      ),
    ],
  });
  await using runtime = await openRuntime();
  expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed" });
  expect(codes).toEqual({
    newSession: "agent_busy",
    fork: "agent_busy",
    switchSession: "agent_busy",
    waitForIdle: "agent_busy",
    runCompaction: "agent_busy",
    reload: "unsupported",
    shutdown: "unsupported",
    isIdle: "false",
    hasPendingMessages: "false",
  });
});

test("extension handlers of committed events can notify but not ask, and a notice is an event of the run", async () => {
  const members: string[] = [];
  const notified = Promise.withResolvers<void>();
  const waits = tool({
    name: "wait",
    description: "Waits for the notice",
    inputSchema: { type: "object" },
    execute: () => notified.promise.then(() => "done"),
  });
  const agent = new Agent({
    name: "scout",
    model: scriptedModel([{ toolCalls: [{ name: "wait", input: {} }] }, "Done."]),
    tools: [waits],
    extensions: [
      extension("notes", (api) =>
        api.on("tool_execution_start", (_event, { ui }) => {
          members.push(...Object.keys(ui));
          ui.notify("A tool starts.", "warning");
          notified.resolve();
        }),
      ),
    ],
  });
  await using runtime = await openRuntime();
  const run = await agent.submit("go", { runtime });
  await run.result();
  expect(members).toEqual(["notify"]);
  const notices: unknown[] = [];
  for await (const event of run.events()) if (event.type === "extension_notice") notices.push(event.data);
  expect(notices).toEqual([{ extension: "notes", message: "A tool starts.", level: "warning" }]);
});

test("sessions.fork, move and switch ask the extensions of the session's agent and obey a refusal", async () => {
  const seen: string[] = [];
  let refuses = true;
  const agent = new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [
      extension("keeper", (api) => {
        for (const type of ["session_before_fork", "session_before_tree", "session_before_switch"] as const)
          api.on(type, () => {
            seen.push(type);
            return refuses ? { cancel: true, reason: "stay here" } : undefined;
          });
      }),
    ],
  });
  await using runtime = await openRuntime();
  const { sessionId, runId } = await agent.invoke("go", { runtime });
  const { sessions } = runtime;
  const refused = {
    code: "permission_denied",
    message: expect.stringContaining("extension keeper refuses: stay here"),
  };
  await expect(sessions.fork(sessionId)).rejects.toMatchObject(refused);
  await expect(sessions.move(sessionId, runId)).rejects.toMatchObject(refused);
  await expect(sessions.switch(sessionId, null)).rejects.toMatchObject(refused);
  refuses = false;
  const fork = await sessions.fork(sessionId);
  expect(await sessions.move(sessionId, runId)).toBe(runId);
  expect(await sessions.switch(sessionId, fork)).toBe(fork);
  expect(await sessions.switch(sessionId, null)).toMatch(/^ses_/);
  expect(seen).toHaveLength(7);
  expect(runtime.extensionErrors()).toEqual([]);
});

test("an extension command can navigate, and runCommand returns the session in which to continue", async () => {
  const agent = new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [
      extension("commands", (api) => {
        api.registerCommand({
          name: "new",
          description: "Starts a new session",
          run: async (_args, ctx) => void (await ctx.newSession()),
        });
        api.registerCommand({
          name: "fail",
          description: "Fails",
          run: () => {
            throw new Error("boom");
          },
        });
      }),
    ],
  });
  await using runtime = await openRuntime();
  const { sessionId } = await agent.invoke("go", { runtime });
  expect((await agent.commands({ runtime })).map(({ name }) => name)).toEqual(["new", "fail"]);
  const result = await agent.runCommand("new", "", { runtime, sessionId });
  expect(result.sessionId).not.toBe(sessionId);
  await expect(agent.runCommand("fail", "", { runtime, sessionId })).rejects.toThrow("boom");
  await expect(agent.runCommand("nwe", "", { runtime, sessionId })).rejects.toMatchObject({
    code: "not_found",
  });
  expect(runtime.extensionErrors()).toMatchObject([{ event: "command fail", runId: null, sessionId }]);
});

describe("the setup of an extension", () => {
  const look = (name: string, result: string) =>
    tool({ name, description: name, inputSchema: { type: "object" }, execute: () => result });

  test("setup of an extension runs once per agent, and the agent's own parts take precedence over registered ones by name", async () => {
    let setups = 0;
    const model = scriptedModel([
      {
        toolCalls: [
          { name: "own", input: {} },
          { name: "added", input: {} },
          { name: "skill", input: { name: "tidy" } },
        ],
      },
      "Done.",
      "Again.",
    ]);
    const agent = new Agent({
      name: "scout",
      model,
      tools: [look("own", "of the agent")],
      extensions: [
        extension("adder", (api) => {
          setups++;
          api.registerTool(look("own", "of the extension"));
          api.registerTool(look("added", "added"));
          api.registerPrompt({ name: "style", text: () => "Write plainly." });
          api.registerSkill({
            name: "tidy",
            description: "How to tidy up",
            read: async () => "Sort things.",
          });
          api.registerModel("acme/large", scriptedModel(["Large."]));
        }),
      ],
    });
    await using runtime = await openRuntime();
    const { sessionId, messages } = await agent.invoke("go", { runtime });
    expect(JSON.stringify(messages)).toContain("of the agent");
    expect(JSON.stringify(messages)).not.toContain("of the extension");
    expect(JSON.stringify(messages)).toContain("Sort things.");
    expect(JSON.stringify(model.calls[0]?.messages[0])).toContain("Write plainly.");
    await runtime.sessions.setModel(sessionId, "acme/large");
    expect(await agent.invoke("on", { runtime, sessionId })).toMatchObject({ output: "Large." });
    expect(setups).toBe(1);
    expect(runtime.extensionErrors()).toEqual([]);
  });

  test.each<[string, (api: ExtensionApi) => void | Promise<void>, string]>([
    [
      "throws",
      () => {
        throw new Error("boom");
      },
      "boom",
    ],
    [
      "registers an unknown event type",
      (api) => api.on("tool_calls" as "tool_call", () => undefined),
      'use "tool_call"',
    ],
    [
      "registers a name twice",
      (api) => {
        for (const _ of [1, 2]) api.registerTool(look("same", ""));
      },
      "already registered the tool same",
    ],
  ])(
    "S4: a setup of an extension that %s is recorded once, and the agent works without the extension",
    async (_what, setup, message) => {
      const agent = new Agent({
        name: "scout",
        model: scriptedModel(["Done.", "Again."]),
        extensions: [{ name: "bad", setup }],
      });
      await using runtime = await openRuntime();
      expect(await agent.invoke("go", { runtime })).toMatchObject({ status: "completed", output: "Done." });
      expect(await agent.invoke("on", { runtime })).toMatchObject({ output: "Again." });
      expect(runtime.extensionErrors()).toMatchObject([
        { extension: "bad", event: "setup", failure: { message: expect.stringContaining(message) } },
      ]);
    },
  );

  test("S4: a setup that never settles exceeds its time limit, and a required extension then denies all tool calls", async () => {
    const clock = new FakeClock();
    const agent = new Agent({
      name: "scout",
      model: scriptedModel([{ toolCalls: [{ name: "own", input: {} }] }, "Done."]),
      tools: [look("own", "executed")],
      extensions: [{ name: "policy", required: true, setup: () => new Promise<void>(() => {}) }],
    });
    await using runtime = await openRuntime({ clock });
    const run = await agent.submit("go", { runtime });
    for await (const event of run.events({ types: ["task_start"] })) if (event.type === "task_start") break;
    await clock.advance(5_000);
    const { status, messages } = await run.result();
    expect(status).toBe("completed");
    expect(JSON.stringify(messages)).toContain(
      "extension policy, which checks tool calls, could not be set up",
    );
  });
});

test("an error of an extension command and a notice after the end of a run go to the surface, because no log has them", async () => {
  const shown: string[] = [];
  await using runtime = await openRuntime({
    surface: {
      notify: (notice) => void shown.push(`${notice.extension}: ${notice.message}`),
      reportError: (error) => void shown.push(`${error.extension} ${error.event}: ${error.failure.message}`),
    },
  });
  const agent = new Agent({
    name: "scout",
    model: scriptedModel(["Done."]),
    extensions: [
      {
        name: "noisy",
        setup: (api) => {
          api.on("run_end", (_event, { ui }) => ui.notify("Goodbye."));
          api.registerCommand({
            name: "fail",
            description: "Fails",
            run: () => Promise.reject(new Error("no key")),
          });
        },
      },
    ],
  });
  const { sessionId } = await agent.invoke("go", { runtime });
  await expect(agent.runCommand("fail", "", { runtime, sessionId })).rejects.toThrow("no key");
  expect(shown).toEqual(["noisy: Goodbye.", "noisy command fail: no key"]);
});

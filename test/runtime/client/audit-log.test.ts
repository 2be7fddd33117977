import { expect, test } from "vitest";
import {
  Priority,
  Transcript,
  userMessage,
  type AuditEntry,
  type RunHandle,
  type TaskId,
  type ToolPipeline,
} from "../../../src/kernel/index.ts";
import { createRuntime } from "../../../src/runtime/local-runtime.ts";
import { auditLog } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, setUp, settle, simpleTool, text, until } from "../runtime-setup.ts";

const root = "t0" as TaskId;

async function readAll(entries: AsyncIterable<AuditEntry>): Promise<AuditEntry[]> {
  const read: AuditEntry[] = [];
  for await (const entry of entries) read.push(entry);
  return read;
}

const actions = (entries: readonly AuditEntry[]): string[] =>
  entries.map(({ actor, action }) => `${actor}: ${action}`);

test("the audit log contains every command from outside under the user name in which it was sent", async () => {
  const { runtime, store, clock } = await setUp();
  const worker = agent("worker", async (ctx) => {
    await ctx.waitForSignal("go");
    await ctx.waitForSignal("never");
  });
  const run = await runtime.submit(worker, null, { userId: "alice" });
  const commands: ((handle: RunHandle) => Promise<unknown>)[] = [
    (handle) => handle.pause(),
    (handle) => handle.resume(),
    (handle) => handle.topUp({ maxTokens: 100 }),
    (handle) => handle.reprioritize(root, Priority.HIGH),
    (handle) => handle.steer("hurry"),
    (handle) => handle.followUp("and then?"),
    (handle) => handle.signal("go"),
    (handle) => handle.cancel("enough"),
  ];
  for (const [index, send] of commands.entries()) await send(index % 2 === 0 ? run : run.as("bob"));
  await clock.advance(1_000);
  expect((await run.result()).status).toBe("cancelled");
  const fork = await run.as("carol").fork({ at: 0 });
  const outside = await readAll(auditLog(store).read(run.runId, { outsideOnly: true }));
  expect(actions(outside)).toEqual([
    "alice: run_start",
    "alice: run_pause",
    "bob: run_resume",
    "alice: budget_top_up",
    "bob: task_reprioritize",
    "alice: run_steer",
    "bob: run_steer",
    "alice: task_signal",
    "bob: run_cancel",
  ]);
  expect(outside.map(({ details }) => details)).toEqual(
    expect.arrayContaining([
      { taskId: root, add: { maxTokens: 100 }, by: "alice" },
      { kind: "steer", input: "hurry", by: "alice", inputId: expect.any(String) },
      { name: "go", by: "alice" },
      { reason: "enough", by: "bob" },
    ]),
  );
  const forked = await readAll(auditLog(store).read(fork.runId, { outsideOnly: true }));
  expect(actions(forked)).toEqual(["alice: run_start", "carol: run_fork"]);
});

test.for([
  { handle: "alice", claimed: undefined, by: "alice" },
  { handle: undefined, claimed: "bob", by: "bob" },
  { handle: undefined, claimed: undefined, by: "user" },
  // The name of the handle is trusted. A caller cannot prove the name that it writes into a decision.
  { handle: "alice", claimed: "bob", by: "alice" },
])(
  "an approval with by: $claimed through a handle of $handle is recorded as decided by $by",
  async ({ handle, claimed, by }) => {
    const { runtime, store } = await setUp();
    const launch = simpleTool({ name: "launch", execute: async () => text("up"), needsApproval: true });
    const worker = agent(
      "worker",
      async (ctx) => (await ctx.tool({ callId: "c", toolName: "launch", input: { pad: 1 } })) as never,
      { tools: [launch] },
    );
    const run = await runtime.submit(worker, null);
    let approvalId = "";
    await until(async () => {
      for await (const event of store.events.read(run.runId))
        if (event.type === "approval_request") approvalId = event.data.approvalId;
      return approvalId !== "";
    });
    const handleInUse = handle === undefined ? run : run.as(handle);
    await handleInUse.approve(approvalId, {
      decision: "approved",
      ...(claimed === undefined ? {} : { by: claimed }),
    });
    expect((await run.result()).status).toBe("completed");
    const entries = await readAll(auditLog(store).read(run.runId));
    expect(entries.filter(({ action }) => action === "approval_decision")).toMatchObject([
      { actor: by, fromOutside: true, details: { approvalId, decision: { decision: "approved", by } } },
    ]);
  },
);

test("a decision of an approval handler in the owner's process is recorded as \"approval handler\", not under a user's name", async () => {
  const { runtime, store } = await setUp();
  const launch = simpleTool({ name: "launch", execute: async () => text("up") });
  const answer = () => ({ decision: "denied" }) as const;
  const pipeline: ToolPipeline = {
    before: [{ name: "test", decide: () => ({ decision: "ask", by: "test", reason: "launching", answer }) }],
  };
  const worker = agent(
    "worker",
    async (ctx) => (await ctx.tool({ callId: "c", toolName: "launch", input: {} })) as never,
    { tools: [launch], callPath: { tool: pipeline } },
  );
  const run = await runtime.submit(worker, null, { userId: "alice" });
  await run.result();
  const outside = await readAll(auditLog(store).read(run.runId, { outsideOnly: true }));
  expect(actions(outside)).toEqual(["alice: run_start", "approval handler: approval_decision"]);
});

test("read() of the audit log shortens texts to 500 characters unless the option full is set", async () => {
  const { runtime, store } = await setUp();
  const secret = "s".repeat(2_000);
  const worker = agent(
    "worker",
    async (ctx) => void (await ctx.llm({ transcript: Transcript.of([userMessage("?")]) })),
    { models: { main: scriptedModel([secret]) } },
  );
  const run = await runtime.submit(worker, { question: [secret] });
  await run.result();
  const audit = auditLog(store);
  const short = await readAll(audit.read(run.runId));
  const shortened = `${"s".repeat(500)} [... 1500 characters left out]`;
  expect(short[0]?.details).toMatchObject({ input: { question: [shortened] } });
  expect(short.find(({ action }) => action === "message_end")).toMatchObject({
    actor: "worker",
    fromOutside: false,
    details: { message: { content: [{ type: "text", text: shortened }] } },
  });
  expect(JSON.stringify(short)).not.toContain("s".repeat(501));
  const full = await readAll(audit.read(run.runId, { full: true, fromSeq: 0 }));
  expect(full[0]?.details).toMatchObject({ input: { question: [secret] } });
  expect(full.map(({ action }) => action)).toEqual(short.map(({ action }) => action));
});

test("the actor of a run that an inbox message started is the agent that sent the message", async () => {
  const { runtime, store } = await setUp();
  const helper = agent("helper", async () => undefined);
  const worker = agent("worker", async (ctx) => ctx.send(helper.id, "hello"), { subAgents: [helper] });
  const claimed: string[] = [];
  const claim = store.leases.claim.bind(store.leases);
  store.leases.claim = async (...args) => {
    const leases = await claim(...args);
    claimed.push(...leases.map(({ runId }) => runId));
    return leases;
  };
  const run = await runtime.submit(worker, null);
  await run.result();
  await until(() => new Set(claimed).size === 2);
  await settle();
  const other = claimed.find((runId) => runId !== run.runId) as typeof run.runId;
  const entries = await readAll(auditLog(store).read(other, { outsideOnly: true }));
  expect(actions(entries)).toEqual(["worker: run_start"]);
});

test("E1: verify() of the audit log accepts an intact log, reports a memory chain as not keyed, and counts events since a head", async () => {
  const { runtime, store } = await setUp();
  const worker = agent("worker", async (ctx) => void (await ctx.waitForSignal("go")));
  const run = await runtime.submit(worker, null);
  await settle();
  const audit = auditLog(store);
  const before = await audit.verify(run.runId);
  expect(before).toMatchObject({ ok: true, keyed: false });
  await run.signal("go");
  await run.result();
  const head = before.ok ? before.head : "";
  const after = await audit.verify(run.runId, head);
  expect(after).toMatchObject({ ok: true, sinceHead: expect.any(Number) });
  expect(after.ok && after.sinceHead).toBeGreaterThan(0);
  expect(await audit.verify(run.runId, "not a head")).toMatchObject({ ok: false });
});

test("createRuntime refuses an empty auditKey, and one for a store in memory or a store that the caller opened", async () => {
  const { store } = await setUp();
  await expect(createRuntime({ store: "sqlite:nowhere.db", auditKey: "" })).rejects.toThrow(
    "invalid auditKey: it is empty",
  );
  await expect(createRuntime({ auditKey: "k" })).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(createRuntime({ store, auditKey: "k" })).rejects.toMatchObject({ code: "invalid_argument" });
});

test("as() of a run handle refuses an empty name", async () => {
  const { runtime } = await setUp();
  const run = await runtime.submit(
    agent("worker", async () => undefined),
    null,
  );
  expect(() => run.as("")).toThrow("the name passed to as() is empty");
});

// The code blocks of seed 003 in TypeScript. Each comment `003:57` quotes the line of the seed beside it.

import { expect, test } from "vitest";
import {
  Agent,
  auditLog,
  getRunContext,
  HookManager,
  memoryStore,
  openRuntime,
  permissions,
  sha256,
  toolHooks,
  tool,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type HostedAgent,
} from "../../src/entries/index.ts";
import { messageText, Transcript, userMessage, type EmittableEvent } from "../../src/entries/kernel.ts";
import { scriptedModel } from "../../src/entries/testing.ts";

/** Runs an architecture with these options and returns what its `run` received. */
async function received(
  options: Partial<ConstructorParameters<typeof Agent>[0]> = {},
): Promise<{ session: AgentSession; deps: Dependencies; prompt: string }> {
  const seen = Promise.withResolvers<{ session: AgentSession; deps: Dependencies; prompt: string }>();
  const architecture: Architecture = {
    name: "probe",
    declaredWorkers: () => ({}),
    async *run(session, deps, prompt) {
      yield* [];
      seen.resolve({ session: { ...session }, deps, prompt });
    },
  };
  await new Agent({ name: "probe", model: scriptedModel([]), architecture, ...options }).invoke("Hello?", {
    userId: "ann",
    metadata: { tier: "gold" },
  });
  return seen.promise;
}

test("003:45 the class AgentSession starts empty", async () => {
  const { session } = await received({ instructions: "Be brief." });
  expect(session.id).toMatch(/^ses_/u); // 003:55 id: str
  expect(session.instructions).toBe("Be brief."); // 003:56 instructions: str
  expect(session.messages).toBeInstanceOf(Transcript); // 003:57 messages: list[Message]
  expect(session.messages.length).toBe(0);
  expect(session).toMatchObject({
    turns: 0, // 003:58 turns: int = 0
    output: "", // 003:59 output: str = ""
    cumulativeUsage: { inputTokens: 0, outputTokens: 0 }, // 003:60 cumulative_usage: Usage
    interrupted: false, // 003:61 interrupted: bool = False
    interruptionReason: null, // 003:62 interruption_reason: str | None = None
    metadata: {}, // 003:63 metadata: dict[str, Any]
  });
});

test("003:66 the class Dependencies bundles what an architecture may use, and its flags say what is absent", async () => {
  const { deps, prompt } = await received();
  expect(prompt).toBe("Hello?");
  expect(deps.model.modelId).toBe("script"); // 003:77 model: Model
  expect(deps.memory).toBeNull(); // 003:78 memory: Memory
  expect(deps.ctx.taskId).toBe("t0"); // 003:79 runtime: Runtime
  expect(deps.tools.list(Transcript.empty)).toEqual([]); // 003:80 tools: ToolHost
  expect(deps.budget.allowsTurn()).toEqual({ allowed: true }); // 003:81 budget: Budget
  expect(deps.permissions).toBeNull(); // 003:82 permissions: Permissions
  expect(deps.hooks).toBeNull(); // 003:83 hooks: HookRegistry
  expect(deps.telemetry).toBeNull(); // 003:84 telemetry: Telemetry
  expect(deps.maxTurns).toBe(25); // 003:86 max_turns: int
  expect(deps.streaming).toBe(false); // 003:87 streaming: bool = False
  expect(deps).toMatchObject({
    fastAudit: true, // 003:105 fast_audit: bool = True
    fastTelemetry: true, // 003:107 fast_telemetry: bool = True
    fastPermissions: true, // 003:110 fast_permissions: bool = True
    fastHooks: true, // 003:113 fast_hooks: bool = True
    fastRuntime: false, // 003:116 fast_runtime: bool = True; here every step is journaled, also in memory
    fastBudget: true, // 003:120 fast_budget: bool = True
  });
  // 003:134 context: RunContext: user_id, session_id, run_id and metadata
  expect(deps.context).toMatchObject({ userId: "ann", metadata: { tier: "gold" } });
  const configured = await received({
    permissions: permissions({ mode: "bypass" }),
    hooks: new HookManager(),
    toolHooks: toolHooks(),
    budget: { maxTokens: 1_000 },
    maxTurns: 3,
  });
  expect(configured.deps).toMatchObject({
    fastPermissions: false,
    fastHooks: false,
    fastBudget: false,
    maxTurns: 3,
  });
});

test("003:85 the event log is the audit log, which the store holds for each run", async () => {
  const store = memoryStore({ hash: sha256 });
  await using runtime = await openRuntime({ store });
  const agent = new Agent({ name: "clerk", model: scriptedModel(["Hi."]) });
  const { runId } = await agent.invoke("Hi.", { runtime });
  const log = auditLog(store); // 003:85 audit_log: AuditLog | None
  expect(await log.verify(runId)).toMatchObject({ ok: true });
});

test("003:132 tools read the same context with get_run_context()", async () => {
  const whose = tool({
    name: "whose",
    description: "",
    inputSchema: { type: "object" },
    execute: () => getRunContext()?.userId ?? "",
  });
  const model = scriptedModel([{ toolCalls: [{ name: "whose", input: {} }] }, "Done."]);
  const agent = new Agent({ name: "clerk", model, tools: [whose] });
  const { toolCalls } = await agent.invoke("Go.", { userId: "ann" });
  expect(toolCalls[0]?.output).toEqual({ type: "text", text: "ann" });
});

test("003:141 the class Architecture executes the loop: it yields events, changes the session and declares its workers", async () => {
  const critic = new Agent({ name: "critic", model: scriptedModel(["No."]) });
  class SecondOpinion implements Architecture {
    readonly name = "second-opinion"; // 003:150 name: str

    // 003:152 def run(self, session: AgentSession, deps: Dependencies, prompt: str) -> AsyncIterator[Event]:
    async *run(
      session: AgentSession,
      deps: Dependencies,
      prompt: string,
    ): AsyncGenerator<EmittableEvent, void> {
      session.messages = session.messages.append(userMessage(prompt));
      const { message } = await deps.model.generate({ messages: session.messages.slice() });
      session.messages = session.messages.append(message);
      session.turns++;
      session.metadata["first"] = messageText(message);
      yield { type: "architecture_event", data: { architecture: this.name, name: "answered", data: {} } };
      const spawned = await deps.spawnWorker(this.declaredWorkers()["critic"] as HostedAgent, prompt);
      if (spawned.kind === "refused") return;
      const { output } = await deps.ctx.join(spawned.handle);
      if (typeof output === "string") session.output = output;
    }

    // 003:169 def declared_workers(self) -> dict[str, Agent]: # keyed by role name
    declaredWorkers(): Readonly<Record<string, HostedAgent>> {
      return { critic };
    }
  }
  await using runtime = await openRuntime();
  const agent = new Agent({
    name: "lead",
    model: scriptedModel(["Yes."]),
    architecture: new SecondOpinion(),
  });
  const run = await agent.submit("Is it raining?", { runtime });
  const { output, metadata, turns } = await run.result();
  expect({ output, metadata, turns }).toEqual({ output: "No.", metadata: { first: "Yes." }, turns: 2 });
  const types: string[] = [];
  for await (const event of run.events()) types.push(event.type);
  // 003:17 Setup events and teardown events are emitted by the agent, NOT the architecture.
  expect(types.filter((type) => /^(agent_start|architecture_event|agent_end)$/u.test(type))).toEqual([
    "agent_start",
    "architecture_event",
    "agent_start", // of the worker
    "agent_end",
    "agent_end",
  ]);
});

// The code blocks of seed 004 in TypeScript. Each comment `004:112` quotes the line of the seed beside it.

import { expect, test } from "vitest";
import {
  Agent,
  classifyError,
  openRuntime,
  sessionCompaction,
  tool,
  type AgentPhase,
  type ErrorKind,
  type Event,
  type ExtensionApi,
  type Guardrail,
  type RunHandle,
} from "../../src/entries/index.ts";
import { messageText, userMessage, type SessionId } from "../../src/entries/kernel.ts";
import { FakeClock, scriptedModel, type ScriptStep } from "../../src/entries/testing.ts";
import { openWorkspace, type WorkspaceOptions } from "../../src/entries/workspace.ts";
import { until } from "../runtime/runtime-setup.ts";
import { testFolders } from "../workspace/folders.ts";

const look = tool({
  name: "look",
  description: "Looks",
  inputSchema: { type: "object" },
  execute: () => "rain",
});
const looks = { text: "I'll help...", toolCalls: [{ name: "look", input: {}, callId: "c1" }] };
const timeout = Object.assign(new Error("request timed out"), { status: 408 });

async function eventsOf(run: RunHandle): Promise<Event[]> {
  const events: Event[] = [];
  for await (const event of run.events()) if ("seq" in event) events.push(event);
  return events;
}

test("004:37 AgentPhase is idle, turn or compaction, and a busy agent refuses a call at once", async () => {
  const clock = new FakeClock();
  const model = scriptedModel(
    [
      { text: "One.", delayMs: 1_000 },
      { text: "Summary.", delayMs: 1_000 },
    ],
    { clock },
  );
  const agent = new Agent({ name: "clerk", model, compaction: { keepRecentTokens: 1 } });
  await using runtime = await openRuntime({ clock });
  const sessionId = "chat";
  const phases: AgentPhase[] = [await agent.phase(sessionId, { runtime })]; // 004:38 IDLE = "idle"
  const run = await agent.submit("Hello? ".repeat(100), { runtime, sessionId });
  await until(() => model.calls.length === 1);
  phases.push(await agent.phase(sessionId, { runtime })); // 004:39 TURN = "turn"
  // 004:49 Calling either while the agent is busy raises RuntimeError immediately.
  await expect(agent.invoke("And?", { runtime, sessionId })).rejects.toMatchObject({ code: "agent_busy" });
  await expect(runtime.sessions.compact(sessionId)).rejects.toMatchObject({ code: "agent_busy" });
  await clock.advance(1_000);
  await run.result();
  const compaction = await runtime.sessions.compact(sessionId);
  await until(() => model.calls.length === 2);
  phases.push(await agent.phase(sessionId, { runtime })); // 004:40 COMPACTION = "compaction"
  await clock.advance(1_000);
  await compaction.result();
  phases.push(await agent.phase(sessionId, { runtime })); // 004:47 restore it in a finally block
  expect(phases).toEqual(["idle", "turn", "compaction", "idle"]);
});

test("004:53 invoke() follows the order of the turn flow", async () => {
  const agent = new Agent({ name: "clerk", model: scriptedModel(["One."]) });
  await using runtime = await openRuntime();
  const run = await agent.submit("Hello?", { runtime });
  await run.result();
  const wanted = [
    "input", // 004:59 Emit 'input' event
    "before_agent_start", // 004:66 Emit 'before_agent_start'
    "context", // 004:74 Emit 'context'
    "agent_end", // 004:91 Emit 'agent_end'
    "save_point", // 004:89 Emit 'save_point'; both are in one commit
    "settled", // 004:98 If none: emit 'settled'
  ];
  const types = (await eventsOf(run)).map(({ type }): string => type);
  expect(types.filter((type) => wanted.includes(type))).toEqual(wanted);
});

test("004:112 a failed model call is tried again after 2, 4 and 8 seconds, max_retries times", async () => {
  const clock = new FakeClock();
  const failing: ScriptStep[] = [1, 2, 3, 4].map(() => ({ error: timeout }));
  const model = scriptedModel(failing, { clock });
  await using runtime = await openRuntime({ clock });
  const run = await new Agent({ name: "clerk", model }).submit("Hello?", { runtime });
  // 004:112 for attempt in range(max_retries + 1):
  for (const [attempt, delayMs] of [2_000, 4_000, 8_000].entries()) {
    await until(() => model.calls.length === attempt + 1);
    await clock.advance(delayMs - 1);
    expect(model.calls).toHaveLength(attempt + 1);
    await clock.advance(1); // 004:125 await asyncio.sleep(base_delay_s * 2 ** (attempt - 1))
  }
  expect((await run.result()).error?.code).toBe("model_timeout"); // 004:119 error = self._engine.state.error_message
  expect(model.calls).toHaveLength(4);
  const delays = (await eventsOf(run)).flatMap((event) =>
    event.type === "retry_start" ? [event.data.delayMs] : [],
  );
  expect(delays).toEqual([2_000, 4_000, 8_000]);
});

test("004:184 retry: false disables retries, and maxRetries and baseDelayMs change them", async () => {
  for (const [retry, calls] of [
    [false, 1], // 004:184 config.retry_enabled = False
    [{ maxRetries: 5, baseDelayMs: 0 }, 6], // 004:185 config.retry_config.max_retries = 5; 004:186 base_delay_ms * 2^(attempt-1)
  ] as const) {
    const model = scriptedModel(Array.from({ length: 6 }, () => ({ error: timeout })));
    const { status, error } = await new Agent({ name: "clerk", model, retry }).invoke("Hello?");
    expect([status, error?.code, model.calls.length]).toEqual(["failed", "model_timeout", calls]);
  }
});

const http = (status: number, message: string): Error => Object.assign(new Error(message), { status });
const abort = Object.assign(new Error("The operation timed out"), { name: "TimeoutError" });

test.each<[line: number, ErrorKind, boolean, unknown]>([
  [132, "rate_limit", true, http(429, "too many requests")], // 004:132 RATE_LIMIT 429 yes
  [133, "overloaded", true, http(503, "overloaded")], // 004:133 OVERLOADED 503 / 529 yes
  [133, "overloaded", true, http(529, "overloaded")],
  [134, "server_error", true, http(500, "internal error")], // 004:134 SERVER_ERROR 500 / 502 yes
  [134, "server_error", true, http(502, "bad gateway")],
  [135, "timeout", true, abort], // 004:135 TIMEOUT yes
  [136, "context_overflow", true, http(400, "maximum context length is 8192 tokens")], // 004:136 CONTEXT_OVERFLOW
  [137, "unknown", true, new Error("what?")], // 004:137 UNKNOWN yes
  [138, "auth", false, http(401, "invalid api key")], // 004:138 AUTH 401 / 403 no
  [139, "auth_permanent", false, http(403, "This API key has been revoked")], // 004:139 AUTH_PERMANENT 401 / 403 no
  [140, "billing", false, http(402, "payment required")], // 004:140 BILLING 402 / 429 no
  [140, "billing", false, http(429, "you exceeded your current quota, check your plan and billing details")],
  [141, "model_not_found", false, http(404, "The model `gpt-9` does not exist")], // 004:141 MODEL_NOT_FOUND 404 no
  [142, "content_blocked", false, http(400, "the response was filtered: content_filter")], // 004:142 CONTENT_BLOCKED no
  [143, "format_error", false, http(400, "invalid parameter")], // 004:143 FORMAT_ERROR 400 no
])("004:%i classify_error() calls it %s, retryable: %s", (_line, kind, retryable, error) => {
  const { kind: found, retryable: canRetry } = classifyError(error);
  expect({ kind: found, retryable: canRetry }).toEqual({ kind, retryable });
});

test("004:149 a session keeps the user's message once, and only the answer of the attempt that succeeded", async () => {
  const clock = new FakeClock();
  const model = scriptedModel([looks, "Checked.", { error: timeout }, "resuming..."], { clock });
  const agent = new Agent({ name: "coder", model, tools: [look] });
  await using runtime = await openRuntime({ clock });
  const sessionId = "auth";
  await agent.invoke("fix the auth bug", { runtime, sessionId }); // 004:152 [msg-0] User: "fix the auth bug"
  const run = await agent.submit("continue working", { runtime, sessionId }); // 004:156 User input: "continue working"
  await until(() => model.calls.length === 3); // 004:162 Engine fails with timeout
  await clock.advance(2_000); // 004:164 Reset Engine, wait 2s
  expect((await run.result()).status).toBe("completed"); // 004:168 Engine runs again, succeeds
  const entries = await runtime.sessions.path(sessionId);
  const said = entries.flatMap((entry) =>
    entry.type === "message" ? [`${entry.message.role}: ${messageText(entry.message)}`] : [],
  );
  expect(said).toEqual([
    "user: fix the auth bug", // 004:174 [msg-0] User: "fix the auth bug"
    "assistant: I'll help...", // 004:175 [msg-1] Assistant: "I'll help..."
    expect.stringMatching(/^tool: /u), // 004:176 [msg-2] Tool result: {...}
    "assistant: Checked.",
    "user: continue working", // 004:177 [msg-3] User: "continue working"
    "assistant: resuming...", // 004:178 [msg-4] Assistant: "resuming..."
  ]);
});

test("004:201 each event of the log reaches the handlers of each extension, and an error of a handler aborts nothing", async () => {
  const seen: string[] = [];
  const setup = (name: string) => (api: ExtensionApi) => {
    api.on("message_end", (event, ctx) => void seen.push(`${name} ${event.type} ${typeof ctx.cwd}`)); // 004:205
    api.on("turn_end", () => {
      throw new Error("boom");
    });
  };
  const extensions = ["one", "two"].map((name) => ({ name, setup: setup(name) })); // 004:203 for ext in self._extensions
  await using runtime = await openRuntime({ onError: () => undefined });
  const agent = new Agent({ name: "clerk", model: scriptedModel(["Hi."]), extensions });
  expect((await agent.invoke("Hi.", { runtime })).status).toBe("completed");
  expect(seen).toEqual(["one message_end string", "two message_end string"]);
  // 004:207 Extension errors are caught and appended to self._extensions._errors.
  expect(runtime.extensionErrors().map(({ extension }) => extension)).toEqual(["one", "two"]);
});

test("004:213 extensions block calls, patch results and end the loop, and live state is never stored", async () => {
  const executed: string[] = [];
  const act = (name: string) =>
    tool({
      name,
      description: "",
      inputSchema: { type: "object" },
      execute: () => (executed.push(name), "secret"),
    });
  const setup = (api: ExtensionApi): void => {
    // 004:29 _before_tool_call: emits 'tool_call', can block; 004:218 ToolCallEventResult(block=True)
    api.on("tool_call", ({ toolName }) => (toolName === "wipe" ? { block: true, reason: "no" } : undefined));
    // 004:30 _after_tool_call: emits 'tool_result', can patch; 004:220 ToolResultEventResult patches the content
    api.on("tool_result", () => ({ output: "[redacted]" }));
    api.on("tool_result", ({ result }) => ({ isError: result.isError, terminate: true })); // 004:220 terminate=True
  };
  const model = scriptedModel([
    { toolCalls: [{ name: "wipe", input: {} }] },
    { text: "Read.", toolCalls: [{ name: "read", input: {} }] },
  ]);
  const agent = new Agent({
    name: "clerk",
    model,
    tools: [act("wipe"), act("read")],
    extensions: [{ name: "policy", setup }],
    ephemeral: [{ name: "browser", messages: async () => [userMessage("The tab shows the inbox.")] }], // 004:222
  });
  await using runtime = await openRuntime();
  const { sessionId, status } = await agent.invoke("Go.", { runtime });
  expect({ status, executed, calls: model.calls.length }).toEqual({
    status: "completed",
    executed: ["read"],
    calls: 2,
  });
  expect(model.calls.map(({ messages }) => messageText(messages.at(-1) ?? userMessage("")))).toEqual([
    "The tab shows the inbox.",
    "The tab shows the inbox.",
  ]);
  const stored = JSON.stringify(await runtime.sessions.path(sessionId));
  expect(stored).toContain("[redacted]");
  expect(stored).not.toMatch(/secret|inbox/u);
});

test("004:241 the footer of a workspace's prompt names date and folders, with a profile also those of the profile", async () => {
  const folders = await testFolders();
  const { home, project } = folders;
  await folders.write({ "~/.reeve/profiles/work/SOUL.md": "You are Ada's colleague." });
  const footer = async (options: WorkspaceOptions): Promise<string> => {
    const now = (): number => new Date(2026, 10, 16, 12).getTime();
    const { prompts } = await openWorkspace({ cwd: project, home, env: {}, now, ...options });
    const { text } = await prompts.build({ channel: null, sessionId: "ses_1" as SessionId, toolNames: [] });
    return text.slice(text.indexOf("Current date:"));
  };
  const start = [
    "Current date: 2026-11-16", // 004:241 Current date: <ISO date>
    `Current working directory: ${project}`, // 004:242 Current working directory: <cwd>
    `Global directory: ${home}`, // 004:243 Global directory: ~/.operator
  ];
  expect(await footer({})).toBe(start.join("\n"));
  const profile = `${home}/profiles/work`;
  expect((await footer({ profile: "work" })).split("\n")).toEqual([
    ...start,
    `Profile directory: ${profile}`, // 004:246 Profile directory: ~/.operator/profiles/<name>
    `Profile SOUL.md: ${profile}/SOUL.md (persona and identity)`, // 004:247 ← persona and identity
    `Profile MEMORY.md: ${profile}/MEMORY.md (long-term memory)`, // 004:248 ← long-term memory
    `Profile USER.md: ${profile}/USER.md (the user)`, // 004:249 ← who you are talking to
    `Profile skills directory: ${profile}/skills`, // 004:250 Profile skills directory
    `Profile knowledge directory: ${profile}/knowledge`, // 004:251 Profile knowledge directory
    `Profile temp directory: ${profile}/temp (scratch files)`, // 004:252 ← scratchpad / terminal CWD
    "Session ID: ses_1", // 004:253 Session ID: <id> ← only when a session exists
  ]);
});

test("004:264 a session is compacted after the turn, if it is too large or an extension asks for it", async () => {
  // 004:264 self._compaction.should_compact(self._context_tokens, self._context_window)
  const compaction = sessionCompaction({
    reserveTokens: 1_000,
    summarize: async (requests) => requests.map(() => "Summary."),
  });
  expect(compaction.shouldCompact({ tokens: 7_001, contextWindow: 8_000 })).toBe(true);
  expect(compaction.shouldCompact({ tokens: 7_000, contextWindow: 8_000 })).toBe(false);
  const setup = (api: ExtensionApi): void => api.on("tool_call", (_call, ctx) => ctx.compact("Keep names.")); // 004:269 Extensions may call ctx.compact()
  const noted = scriptedModel([looks, "Done.", "Summary."]);
  await using runtime = await openRuntime();
  const agent = new Agent({
    name: "clerk",
    model: noted,
    tools: [look],
    compaction: { keepRecentTokens: 1 },
    extensions: [{ name: "tidy", setup }],
  });
  const run = await agent.submit("Go there and look. ".repeat(100), { runtime });
  const { sessionId } = await run.result();
  const [scheduled] = (await eventsOf(run)).flatMap((event) =>
    event.type === "compaction_scheduled" ? [event.data.runId] : [],
  );
  await (await runtime.find(scheduled ?? ""))?.result(); // 004:267 await self._run_compaction(...)
  expect((await runtime.sessions.path(sessionId)).some(({ type }) => type === "compaction")).toBe(true);
  expect(JSON.stringify(noted.calls.at(-1))).toContain("Keep names.");
});

test("004:317 spawn_child(tools=['skill']) shares the request of its parent and calls only the tools in the list", async () => {
  const skill = tool({
    name: "skill",
    description: "Skills",
    inputSchema: { type: "object" },
    execute: () => "ok",
  });
  const model = scriptedModel([
    "One.",
    { toolCalls: [{ name: "look", input: {} }] },
    { toolCalls: [{ name: "skill", input: {} }] },
    "Reviewed.",
  ]);
  const agent = new Agent({ name: "clerk", model, instructions: "Be brief.", tools: [look, skill] });
  await using runtime = await openRuntime();
  const { sessionId } = await agent.invoke("Hello?", { runtime });
  // 004:317 child = agent.spawn_child(tools=['skill'])
  const child = await agent.spawnChild({ runtime, sessionId, prompt: "Review it.", tools: ["skill"] });
  const { output, toolCalls } = await child.result();
  expect(output).toBe("Reviewed.");
  // 004:335 Non-whitelisted calls return ToolResultContent(is_error=True) immediately.
  expect(toolCalls.map(({ toolName, status }) => [toolName, status])).toEqual([
    ["look", "denied"],
    ["skill", "ok"],
  ]);
  const [parent, first] = model.calls;
  expect(first?.messages.slice(0, parent?.messages.length)).toEqual(parent?.messages); // 004:322 byte-identical
  expect(first?.tools).toEqual(parent?.tools); // 004:323 All parent tools in the request body
  // 004:329 No session persistence
  expect(JSON.stringify(await runtime.sessions.path(sessionId))).not.toContain("Reviewed.");
});

test("004:341 guardrails of the agent and of its extensions are merged, and the agent's take precedence by name", async () => {
  const asked: string[] = [];
  const guardrail = (name: string, owner: string): Guardrail => ({
    name,
    beforeCall: () => (asked.push(`${owner} ${name}`), { decision: "allow" }),
  });
  const setup = (api: ExtensionApi): void => {
    api.registerGuardrail(guardrail("shared", "extension")); // 004:344 ext_guardrails = extensions.get_guardrails()
    api.registerGuardrail(guardrail("added", "extension"));
  };
  const agent = new Agent({
    name: "clerk",
    model: scriptedModel([looks, "Done."]),
    tools: [look],
    guardrails: [guardrail("shared", "agent")], // 004:343 file_guardrails = resources.get_guardrails()
    extensions: [{ name: "policy", setup }],
  });
  await agent.invoke("Go.");
  expect(asked).toEqual(["agent shared", "extension added"]); // 004:345 (file names win on collision)
});

test("004:359 the system prompt is built once per channel, until reload()", async () => {
  let built = 0;
  class Prompts {
    readonly #cache = new Map<string | null, string>(); // 004:359 self._system_prompt_cache: dict[str | None, str]

    async build({
      channel,
    }: {
      readonly channel: string | null;
    }): Promise<{ text: string; fromCache: boolean }> {
      const known = this.#cache.get(channel); // 004:361 Key is opts.channel (... or None for the REPL).
      if (known !== undefined) return { text: known, fromCache: true };
      const text = `Prompt ${++built} for ${channel ?? "the terminal"}.`;
      this.#cache.set(channel, text);
      return { text, fromCache: false };
    }

    async reload(): Promise<void> {
      this.#cache.clear(); // 004:363 On reload() (resources changed)
    }
  }
  const instructions = new Prompts();
  const model = scriptedModel(["1", "2", "3", "4"]);
  const agent = new Agent({ name: "clerk", model, instructions });
  await using runtime = await openRuntime();
  const cached: boolean[] = [];
  for (const channel of [undefined, "telegram", "telegram", "reload"]) {
    if (channel === "reload") await instructions.reload();
    const options = channel === "telegram" ? { channel } : {};
    const run = await agent.submit("Hi.", { runtime, ...options });
    await run.result();
    for (const event of await eventsOf(run))
      if (event.type === "before_agent_start") cached.push(event.data.fromCache);
  }
  expect(cached).toEqual([false, false, true, false]);
  expect(model.calls.map(({ messages: [system] }) => system && messageText(system))).toEqual([
    "Prompt 1 for the terminal.",
    "Prompt 2 for telegram.",
    "Prompt 2 for telegram.",
    "Prompt 3 for the terminal.",
  ]);
});

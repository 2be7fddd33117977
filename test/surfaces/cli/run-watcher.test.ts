import { expect, test } from "vitest";
import {
  formatTaskId,
  noUsage,
  rootTaskId,
  type ApprovalRequest,
  type Delta,
  type Event,
  type JsonObject,
  type JsonValue,
  type Lease,
  type RunResult,
} from "../../../src/kernel/index.ts";
import { eventLine } from "../../../src/surfaces/cli/commands/runs/event-line.ts";
import { WorkerLog } from "../../../src/surfaces/cli/commands/worker/worker-log.ts";
import { requestLines, TextWatcher } from "../../../src/surfaces/cli/terminal/run-watcher.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal/terminal.ts";

function ended(output: string): RunResult<JsonValue> {
  return {
    output,
    status: "completed",
    interruptionReason: null,
    usage: noUsage,
    costUsd: 0,
    unreported: { tokens: 0, costUsd: 0 },
    turns: 1,
    runId: "run_1",
    sessionId: "s",
    agentId: "a",
    error: null,
    metadata: {},
  } as unknown as RunResult<JsonValue>;
}

const eventBase = { seq: 1, runId: "run_1", taskId: rootTaskId, agentId: "scout", parentId: null, at: 0 };

/** A terminal that records the printed lines and texts. */
function screen(isWatched = false) {
  const out: string[] = [];
  const said: string[] = [];
  const put: string[] = [];
  const terminal: Terminal = {
    out: async (line) => void out.push(line),
    say: (line) => void said.push(line),
    put: (text) => void put.push(text),
    isWatched,
    canAsk: false,
    ask: async () => undefined,
    input: async () => "",
    onInterrupt: () => () => undefined,
    env: {},
  };
  return { terminal, out, said, put };
}

test.for([
  { isWatched: true, shown: String.raw`red\u001b[31m` + "\nnext" },
  { isWatched: false, shown: "red\u{1b}[31m\nnext" },
])(
  "reeve run escapes control characters in an answer that was not streamed on a terminal (terminal: $isWatched)",
  async ({ isWatched, shown }) => {
    const { terminal, out } = screen(isWatched);
    await new TextWatcher(terminal).end(ended("red\u{1b}[31m\nnext"));
    expect(out).toEqual([shown]);
  },
);

const broken = { code: "internal", message: "no key\u{1b}" } as const;

test.for([
  {
    type: "permission_deny",
    data: { callId: "c", toolName: "wipe", by: "guardrail careful", reason: "Not here." },
    words: "wipe is denied by guardrail careful: Not here.",
  },
  {
    type: "guardrail_decision",
    data: { guardrail: "careful", stage: "input", decision: "block", reason: "Rude." },
    words: "guardrail careful decides block at input: Rude.",
  },
  {
    type: "guardrail_error",
    data: { guardrail: "careful", stage: "input", failure: broken },
    words: String.raw`guardrail careful failed at input: no key\u001b`,
  },
  {
    type: "hook_error",
    data: { hook: "onAgentEnd", failure: broken },
    words: String.raw`hook onAgentEnd failed: no key\u001b`,
  },
  {
    type: "extension_error",
    data: { extension: "noisy", event: "setup", failure: broken },
    words: String.raw`extension noisy failed in setup: no key\u001b`,
  },
  {
    type: "extension_notice",
    data: { extension: "noisy", message: "Mind the gap.", level: "warning" },
    words: "extension noisy: warning: Mind the gap.",
  },
] as const)("reeve run and reeve logs show the event $type", async ({ type, data, words }) => {
  const { terminal, said } = screen();
  const event = { ...eventBase, type, data } as unknown as Event;
  await new TextWatcher(terminal).see(event);
  expect(said).toEqual([`  ${words}`]);
  expect(eventLine(event)).toBe(`00:00:00  scout  ${words}`);
});

test("reeve run and reeve logs distinguish a denied call from a failed one", async () => {
  const { terminal, said } = screen();
  const result = { output: { type: "text", text: "[denied: no]" }, isError: true };
  const callEnd = (status: string): Event =>
    ({
      ...eventBase,
      type: "tool_execution_end",
      data: { callId: "c", toolName: "wipe", result, durationMs: 1, status },
    }) as unknown as Event;
  for (const status of ["denied", "error"]) await new TextWatcher(terminal).see(callEnd(status));
  expect(said).toEqual(["  denied wipe: [denied: no]", "  ! wipe: [denied: no]"]);
  expect([eventLine(callEnd("denied")), eventLine(callEnd("error"))]).toEqual([
    "00:00:00  scout  wipe was denied: [denied: no]",
    "00:00:00  scout  wipe failed: [denied: no]",
  ]);
});

test("reeve worker logs errors and notices of extensions with their run", () => {
  const { terminal, out } = screen();
  const events = [
    { ...eventBase, type: "extension_error", data: { extension: "noisy", event: "setup", failure: broken } },
    {
      ...eventBase,
      type: "extension_notice",
      data: { extension: "noisy", message: "Hi.", level: "info" },
    },
    { ...eventBase, type: "agent_error", data: { failure: broken } },
  ] as unknown as Event[];
  const lease = { runId: "run_1", epoch: 1 } as unknown as Lease;
  new WorkerLog(terminal, "json").committed(lease, { number: 1, at: 0, events });
  expect(out.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: "warn", event: "extension_error", runId: "run_1" },
    { level: "info", event: "extension_notice", message: "extension noisy: Hi.", runId: "run_1" },
  ]);
});

test("B3: reeve run prints unreported tokens next to the reported tokens", async () => {
  const { terminal, said } = screen();
  const lost = { tokens: 11_187, costUsd: null };
  await new TextWatcher(terminal).end({ ...ended("half"), status: "cancelled", unreported: lost });
  expect(said.at(-1)).toBe("cancelled · 1 turn · 0 tokens · up to 11,187 unreported · $0.0000 · run_1");
  const charged = { costUsd: 0.0975, unreported: { tokens: 11_187, costUsd: 0.095, likelyUsd: 0.0025 } };
  await new TextWatcher(terminal).end({ ...ended("half"), ...charged });
  expect(said.at(-1)).toContain("· $0.0975 (likely $0.00500) ·");
  const alone = { costUsd: 0.095, unreported: { ...charged.unreported, likelyUsd: null } };
  await new TextWatcher(terminal).end({ ...ended("half"), ...alone });
  expect(said.at(-1)).toContain("· $0.0950 (likely not known) ·");
});

test("reeve run reports an unknown price with the command-line options that solve the problem", async () => {
  const { terminal, said } = screen();
  const failure = {
    code: "unknown_price",
    message: "give its price with openRuntime({ prices })",
    details: { provider: "ollama", modelId: "qwen3" },
  } as const;
  await new TextWatcher(terminal).end({ ...ended(""), status: "failed", error: failure });
  expect(said[0]).toMatch(/^reeve: failed: ollama\/qwen3 has no known price.*--max-tokens or --max-turns/u);
  expect(said.join("\n")).not.toContain("openRuntime");
});

test("reeve run does not print the text of a cancelled answer again if it was already streamed", async () => {
  const { terminal, out, put } = screen(true);
  const watcher = new TextWatcher(terminal);
  await watcher.see({ type: "message_update", taskId: formatTaskId(0), kind: "text", text: "half" } as Delta);
  await watcher.end({ ...ended("half"), status: "cancelled" });
  expect([put.join(""), out]).toEqual(["half\n", []]);
});

test.for([
  { input: { path: "a" }, hasShown: true },
  { input: { path: "a".repeat(200) }, hasShown: false },
])(
  "a call that needs approval counts as shown only if the terminal printed the whole call",
  async ({ input, hasShown }) => {
    const { terminal, said } = screen(true);
    const watcher = new TextWatcher(terminal);
    const call = { callId: "c", toolName: "rm", input };
    const request: ApprovalRequest = {
      ...call,
      kind: "tool_call",
      approvalId: "p",
      inputDigest: "d",
      reason: "it may not",
    };
    expect(watcher.hasShown(request)).toBe(false);
    await watcher.see({
      seq: 0,
      runId: "run_1",
      taskId: formatTaskId(0),
      agentId: "a",
      parentId: null,
      at: 0,
      type: "tool_execution_start",
      data: call,
    } as unknown as Event);
    expect(said).toHaveLength(1);
    expect(watcher.hasShown(request)).toBe(hasShown);
  },
);

test.for([
  { costUsd: 0, shown: "$0.0000" },
  { costUsd: 0.00035, shown: "$0.000350" },
  { costUsd: 0.5, shown: "$0.5000" },
])("reeve run prints a cost of $costUsd as $shown", async ({ costUsd, shown }) => {
  const { terminal, said } = screen();
  await new TextWatcher(terminal).end({ ...ended("x"), costUsd });
  expect(said.at(-1)).toContain(` · ${shown} · `);
});

test("the terminal shows a request with its tool and arguments, also as executed, and says if it is a question", () => {
  const request: ApprovalRequest = {
    approvalId: "p",
    kind: "tool_call",
    toolName: "open",
    callId: "c",
    input: { path: "%2Fetc" },
    inputDigest: "d",
    reason: "r",
  };
  expect(requestLines(request)).toEqual(['  open {"path":"%2Fetc"}']);
  expect(requestLines({ ...request, parsedInput: { path: "/etc\u001b[2K" } })).toEqual([
    '  open {"path":"%2Fetc"}',
    '    runs with {"path":"/etc\\u001b[2K"}',
  ]);
  expect(requestLines({ ...request, kind: "question" })).toEqual([
    '  open {"path":"%2Fetc"} (a question of this tool)',
  ]);
});

test("the terminal and reeve logs say that the prompt of a hired agent is continued or sent again, without terminal codes", async () => {
  const hired = (name: string, data: JsonObject) =>
    ({ ...eventBase, type: "architecture_event", data: { architecture: "hired", name, data } }) as Event;
  const { said, terminal } = screen();
  const watcher = new TextWatcher(terminal);
  await watcher.see(hired("session_loaded", { agent: "evil\u001b[31m", version: "1", sessionId: "s" }));
  await watcher.see(hired("prompt_resent", { from: "input" }));
  await watcher.see(hired("toString", {}));
  expect(said).toEqual([
    expect.stringContaining("in its earlier session"),
    "  gets its prompt again, because its session does not have it",
  ]);
  expect(said[0]).not.toContain("\u001b");
  expect(eventLine(hired("prompt_continued", {}))).toContain(
    "was interrupted, and is asked to continue: its session has the prompt",
  );
});

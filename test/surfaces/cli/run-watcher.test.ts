import { expect, test } from "vitest";
import {
  formatTaskId,
  noUsage,
  type ApprovalRequest,
  type Delta,
  type Event,
  type JsonValue,
  type RunResult,
} from "../../../src/kernel/index.ts";
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
  "control characters in an answer that was not streamed are escaped on a terminal (terminal: $isWatched)",
  async ({ isWatched, shown }) => {
    const { terminal, out } = screen(isWatched);
    await new TextWatcher(terminal).end(ended("red\u{1b}[31m\nnext"));
    expect(out).toEqual([shown]);
  },
);

test("B3: unreported tokens are printed next to the reported ones", async () => {
  const { terminal, said } = screen();
  const lost = { tokens: 11_187, costUsd: null };
  await new TextWatcher(terminal).end({ ...ended("half"), status: "cancelled", unreported: lost });
  expect(said.at(-1)).toBe("cancelled · 1 turn · 0 tokens · up to 11,187 unreported · $0.0000 · run_1");
});

test("an unknown price is reported with the command-line options that solve it", async () => {
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

test("text of a cancelled answer that was already streamed is not printed again", async () => {
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
  "a call that needs approval counts as shown only if it was printed in full",
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
])("a cost of $costUsd is printed as $shown", async ({ costUsd, shown }) => {
  const { terminal, said } = screen();
  await new TextWatcher(terminal).end({ ...ended("x"), costUsd });
  expect(said.at(-1)).toContain(` · ${shown} · `);
});

test("a request is shown with its tool and arguments, also as executed, and says if it is a question", () => {
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

import { expect, test } from "vitest";
import {
  formatAgentId,
  formatRunId,
  formatSessionId,
  formatTaskId,
  stepAt,
  type Commit,
  type Event,
  type JsonValue,
  type LlmReply,
  type StepRecord,
  type ToolResult,
} from "../../../../src/kernel/index.ts";
import { decodeCommit, encodeCommit } from "../../../../src/runtime/stores/codec/commit-codec.ts";
import type { StoredCommit } from "../../../../src/runtime/stores/codec/stored-commit.ts";

const run = {
  runId: formatRunId("fork"),
  agentId: formatAgentId({ name: "writer" }),
  sessionId: formatSessionId("1"),
};
const taskId = formatTaskId(0);
const usage = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
  costUsd: null,
};

interface Turns {
  readonly count: number;
  /** Makes the content of an event from the content of its step: the same object, or an equal copy. */
  readonly copy: <Content>(content: Content) => Content;
  /** Called each time the outcome of a step is read. */
  readonly look?: () => void;
}

/** Builds the first commit of a fork: all steps of its origin, with the events about them. */
function forkOf({ count, copy, look = () => undefined }: Turns): Commit {
  const steps: StepRecord[] = [];
  const events: Event[] = [];
  const tell = (type: Event["type"], data: object): void =>
    void events.push({
      seq: events.length,
      runId: run.runId,
      taskId,
      agentId: run.agentId,
      parentId: null,
      at: 1,
      type,
      data,
    } as Event);
  const record = (kind: "llm" | "tool", name: string, value: JsonValue): void => {
    const outcome = { kind: "ok", value } as const;
    steps.push({
      taskId,
      address: stepAt("", steps.length),
      kind,
      name,
      digest: "d",
      get outcome() {
        look();
        return outcome;
      },
    });
  };
  for (let turn = 0; turn < count; turn++) {
    // Model servers repeat call ids.
    const call = { callId: "call_0", toolName: "look", input: { turn } };
    const reply: LlmReply = {
      message: { role: "assistant", content: [{ type: "tool_call", ...call }] },
      stopReason: "tool_calls",
      usage,
      model: { provider: "p", modelId: "m" },
    };
    const result: ToolResult = { output: { type: "text", text: `seen ${turn % 7}` }, isError: false };
    record("llm", "main", reply as unknown as JsonValue);
    tell("message_end", { ...reply, message: copy(reply.message), durationMs: 1 });
    tell("tool_execution_start", { ...call, input: copy(call.input) });
    record("tool", "look", result as unknown as JsonValue);
    const { callId, toolName } = call;
    tell("tool_execution_end", { callId, toolName, result: copy(result), durationMs: 1, status: "ok" });
  }
  return { number: 0, at: 1, steps, events };
}

const copies: readonly [string, Turns["copy"]][] = [
  ["the same object", (content) => content],
  ["an equal copy", (content) => structuredClone(content)],
];

test.each(copies)(
  "in a commit with many steps, content that events share with steps is stored once and restored (%s)",
  (_name, copy) => {
    const commit = forkOf({ count: 40, copy });
    const body = JSON.stringify(encodeCommit(commit, run, String));
    const nextEvent = commit.events?.length ?? 0;
    const back = decodeCommit(
      JSON.parse(body) as StoredCommit,
      { ...run, number: 0, at: 1, nextEvent },
      () => [],
    );
    expect(back).toEqual(JSON.parse(JSON.stringify(commit)));
    expect(body.match(/"tool_call"/g)).toHaveLength(40);
    expect(body.match(/seen/g)).toHaveLength(40);
  },
);

test.each(copies)(
  "encoding a commit with four times the steps reads at most four times as many outcomes (%s)",
  (_name, copy) => {
    const looks = (count: number): number => {
      let seen = 0;
      encodeCommit(forkOf({ count, copy, look: () => void seen++ }), run, String);
      return seen;
    };
    expect(looks(800)).toBeLessThanOrEqual(4 * looks(200));
  },
);

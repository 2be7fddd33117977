import { rootTaskId, type Event } from "../../src/kernel/index.ts";
import { RunFold } from "../../src/surfaces/view/run-fold.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";

const usage = {
  inputTokens: 1_000,
  outputTokens: 100,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsd: 0.0035,
};
const model = { provider: "openai", modelId: "gpt-4o" };
const limits = { maxTokens: null, maxCostUsd: null, maxTurns: null, deadlineMs: null };

/**
 * A company of three agents: the lead waits for a scout and a poet. The scout asks a person, and has hired an agent that
 * waits for a seat. The poet has ended.
 */
export function company(scout = "scout"): RunView {
  const agents = new Map([
    ["t0", "lead"],
    ["t1", scout],
    ["t2", "poet"],
    ["t3", "kid"],
  ]);
  const supervision = { spawnBudget: { maxAgents: 2 }, priority: 2 };
  const answer = { usage, model };
  const request = {
    approvalId: "ap_1",
    callId: "c1",
    toolName: "write",
    kind: "tool_call",
    input: { path: "ma\u{202e}de.txt", content: "one" },
    reason: "write may change data",
  };
  const happened: readonly (readonly [taskId: string, type: string, data: object])[] = [
    ["t0", "run_start", { agentId: "lead", sessionId: "ses_1", input: "Go.", supervision }],
    ["t0", "task_start", { budget: { ...limits, maxCostUsd: 0.5, maxTurns: 9 } }],
    ["t0", "message_start", { model }],
    ["t0", "message_end", answer],
    ["t0", "spawn_start", { childTaskId: "t1", agentId: scout, priority: 2 }],
    ["t0", "spawn_start", { childTaskId: "t2", agentId: "poet", priority: 2 }],
    ["t1", "message_end", answer],
    ["t2", "message_end", answer],
    ["t2", "task_end", { status: "completed", output: "green" }],
    ["t1", "spawn_wait", { childTaskId: "t3", agentId: "kid", priority: 2 }],
    ["t1", "approval_request", request],
    ["t1", "task_suspend", { waitsFor: ["approval ap_1"] }],
    ["t0", "task_suspend", { waitsFor: ["join t1 t2"] }],
  ];
  const parents: Readonly<Record<string, string | null>> = {
    t0: null,
    t1: rootTaskId,
    t2: rootTaskId,
    t3: "t1",
  };
  const fold = new RunFold();
  for (const [seq, [taskId, type, data]] of happened.entries())
    fold.add({
      seq,
      at: 1_000 + seq,
      runId: "run_1",
      taskId,
      agentId: agents.get(taskId),
      parentId: parents[taskId],
      type,
      data,
    } as unknown as Event);
  return fold.view();
}

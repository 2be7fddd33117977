import { expect, test } from "vitest";
import { nameAgents } from "../../../src/surfaces/view/agent-names.ts";

const id = "support/ses_run_62ed83f9-0000-4000-8000-000000000000";

test("the view shows an agent whose key is a session by its name in runs, tasks, events and questions", () => {
  const answer = {
    agentId: id,
    run: { agentId: id },
    runs: [{ agentId: id }],
    tasks: [{ agentId: "reviewer/eu-west" }, { agentId: id }],
    approvals: [{ agentId: "writer", rootAgentId: id }],
    questions: { items: [{ agentId: id }], isMore: false },
    events: [
      { type: "spawn_start", agentId: id, data: { agentId: id } },
      { type: "handoff", agentId: id, data: { target: id, task: id } },
      { type: "tool_execution_start", agentId: id, data: { input: { agentId: id } } },
    ],
  };
  expect(nameAgents(answer)).toEqual({
    agentId: "support",
    run: { agentId: "support" },
    runs: [{ agentId: "support" }],
    tasks: [{ agentId: "reviewer/eu-west" }, { agentId: "support" }],
    approvals: [{ agentId: "writer", rootAgentId: "support" }],
    questions: { items: [{ agentId: "support" }], isMore: false },
    events: [
      { type: "spawn_start", agentId: "support", data: { agentId: "support" } },
      { type: "handoff", agentId: "support", data: { target: "support", task: id } },
      // The arguments of a call stay as they are.
      { type: "tool_execution_start", agentId: "support", data: { input: { agentId: id } } },
    ],
  });
});

test("the view shows the agent of a gateway run by the name of the run", () => {
  expect(nameAgents({ agentId: "reeve:gateway/claude" })).toEqual({ agentId: "claude" });
});

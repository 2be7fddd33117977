import { expect, test } from "vitest";
import { hostDecision, hostQuestion } from "../../../src/capabilities/mcp/served-question.ts";
import type { ApprovalRequest } from "../../../src/kernel/index.ts";

const request: ApprovalRequest = {
  approvalId: "p",
  kind: "select",
  toolName: "asker",
  callId: "input",
  input: { message: "Which?", choices: ["a", "b"] },
  inputDigest: "d",
  reason: "Which?",
};

test("a choice that an extension asks for reaches the user of the MCP host as a form, and the choice is the answer", () => {
  const form = { properties: { answer: { type: "string", enum: ["a", "b"] } }, required: ["answer"] };
  expect(JSON.stringify(hostQuestion(request))).toContain(JSON.stringify(form).slice(1, -1));
  const answer = { action: "accept", content: { answer: "b" } };
  expect(hostDecision(answer, { kind: "select", by: "host" })).toEqual({
    decision: "approved",
    by: "host",
    input: "b",
  });
});

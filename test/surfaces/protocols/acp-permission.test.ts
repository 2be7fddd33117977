import { expect, it } from "vitest";
import type { ApprovalRequest } from "../../../src/kernel/index.ts";
import { decisionOf } from "../../../src/surfaces/protocols/acp/permission.ts";

const request: ApprovalRequest = {
  approvalId: "a1",
  kind: "select",
  toolName: "ask",
  callId: "c1",
  input: { message: "Which one?", choices: ["red", "blue"] },
  inputDigest: "",
  reason: "",
} as unknown as ApprovalRequest;

const selected = (optionId: string) => ({ outcome: { outcome: "selected", optionId } }) as const;

it("a permission option of an editor that stands for a choice selects that choice", () => {
  expect(decisionOf(selected("choice 1"), request)).toEqual({ decision: "approved", input: "blue" });
});

it.for(["choice ", "choice 0x1", "choice 2", "allow", "allow_always"])(
  "the permission option %j, which was not offered to the editor, permits nothing",
  (optionId) => {
    expect(decisionOf(selected(optionId), request)).toMatchObject({ decision: "denied" });
  },
);

it.for(["question", "confirm", "elicitation", "input"] as const)(
  "an editor cannot allow a %s for ever",
  (kind) => {
    for (const optionId of ["allow always", "always", "allow_always"])
      expect(decisionOf(selected(optionId), { ...request, kind })).toMatchObject({ decision: "denied" });
  },
);

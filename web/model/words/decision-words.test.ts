import { expect, test } from "vitest";
import { decisionWords } from "./decision-words.ts";

const question = { kind: "question", toolName: "ask_human" } as never;
const call = { kind: "tool_call", toolName: "edit" } as never;

test("the page's line of an answered question has the answer, and that of a call names the tool", () => {
  expect(decisionWords({ decision: "approved", input: "in full", by: "person" }, question)).toBe(
    "You answered: in full",
  );
  expect(decisionWords({ decision: "approved", by: "ada" }, question)).toBe("ada agreed");
  expect(decisionWords({ decision: "denied", reason: "not mine", by: "ada" }, question)).toBe(
    "ada did not answer: not mine",
  );
  expect(decisionWords({ decision: "skipped", by: "ada" }, question)).toBe("ada skipped the question");
  expect(decisionWords({ decision: "approved", by: "ada" }, call)).toBe("ada approved edit");
  expect(decisionWords({ decision: "approved", input: { path: "b" }, by: "ada" }, call)).toBe(
    "ada changed the arguments of edit and approved the call",
  );
  expect(decisionWords({ decision: "denied", reason: "too early", by: "ada" }, call)).toBe(
    "ada denied edit: too early",
  );
});

test("the page's line of a question that the runtime closed says that it was withdrawn, and why", () => {
  const decision = { decision: "denied", reason: "the attempt has ended", by: "runtime" } as const;
  for (const request of [question, call])
    expect(decisionWords(decision, request)).toBe("This question was withdrawn: the attempt has ended");
});

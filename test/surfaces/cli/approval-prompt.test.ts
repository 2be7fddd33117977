import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ApprovalRequest } from "../../../src/kernel/index.ts";
import { askDecision } from "../../../src/surfaces/cli/terminal/approval-prompt.ts";
import { Spinner } from "../../../src/surfaces/cli/terminal/run-watcher.ts";

const request: ApprovalRequest = {
  approvalId: "p",
  kind: "tool_call",
  toolName: "erase",
  callId: "c",
  input: { disk: "sda" },
  inputDigest: "d",
  reason: "erase may delete data",
};

/** A person who gives these answers in order. */
function person(answers: readonly (string | null | undefined)[]) {
  const questions: string[] = [];
  const said: string[] = [];
  const ask = async (question: string) => answers[questions.push(question) - 1];
  return { questions, said, terminal: { ask, say: (line: string) => void said.push(line) } };
}

describe("the approval prompt", () => {
  test.each([
    { answers: ["y"], decision: { decision: "approved" } },
    { answers: [" YES "], decision: { decision: "approved" } },
    { answers: ["a"], decision: { decision: "approved", remember: true } },
    { answers: ["n"], decision: { decision: "denied", reason: "by the person" } },
    { answers: ["no"], decision: { decision: "denied", reason: "by the person" } },
    { answers: ["", "nope", "yy", "y"], decision: { decision: "approved" } },
    { answers: ["", null], decision: undefined },
    { answers: [undefined], decision: undefined },
  ])(
    "the approval prompt in the terminal decides $decision after the answers $answers",
    async ({ answers, decision }) => {
      const { terminal, questions } = person(answers);
      expect(await askDecision(request, terminal)).toEqual(decision);
      expect(questions).toHaveLength(answers.length);
    },
  );

  test.each([
    { kind: "select", answers: ["c", " b "], decision: { decision: "approved", input: "b" } },
    { kind: "input", answers: ["Ann"], decision: { decision: "approved", input: "Ann" } },
    { kind: "input", answers: [null], decision: undefined },
    { kind: "confirm", answers: ["n"], decision: { decision: "denied", reason: "by the person" } },
    { kind: "top_up", answers: ["y"], decision: { decision: "approved" } },
  ] as const)(
    "the approval prompt answers a $kind of an extension with $decision after $answers",
    async (each) => {
      const { terminal, questions } = person(each.answers);
      const input = { message: "Which?", choices: ["a", "b"] };
      const question = { ...request, kind: each.kind, input, reason: "Which?" };
      expect(await askDecision(question, terminal)).toEqual(each.decision);
      expect(questions).toHaveLength(each.answers.length);
    },
  );

  test("the approval prompt does not ask about a call of a client-side tool and says which program answers it", async () => {
    const { terminal, questions, said } = person(["y"]);
    expect(await askDecision({ ...request, kind: "client_tool" }, terminal)).toBeUndefined();
    expect(questions).toEqual([]);
    expect(said).toEqual(['  erase waits for a program that sends run.toolResult("c", value)']);
  });

  test("the approval prompt explains the answers after ? and asks again without the call", async () => {
    const { terminal, questions, said } = person(["?", "n"]);
    await askDecision(request, terminal);
    expect(said.join("\n")).toMatch(/y {2}allows this call\n.*n {2}denies it/u);
    expect(questions).toEqual([
      '  erase {"disk":"sda"}\n  erase may delete data. Allow it? [y/n/a/?] ',
      "  erase may delete data. Allow it? [y/n/a/?] ",
    ]);
  });
});

describe("the spinner of the terminal", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("the terminal spinner shows the activity with its elapsed time, and stop() removes it", () => {
    const lines: string[] = [];
    const spinner = new Spinner({ status: (line) => void lines.push(line) });
    spinner.start("gpt-4o");
    vi.advanceTimersByTime(65_000);
    expect(lines.at(-1)).toMatch(/^\S gpt-4o 1 m 5 s$/u);
    spinner.stop();
    expect(lines.at(-1)).toBe("");
    const shown = lines.length;
    vi.advanceTimersByTime(1_000);
    expect(lines).toHaveLength(shown);
  });

  test("the spinner starts no timer if there is no terminal", () => {
    new Spinner({}).start("gpt-4o");
    expect(vi.getTimerCount()).toBe(0);
  });
});

import { expect, test } from "vitest";
import {
  callText,
  choicesOf,
  firstWords,
  offerOf,
  otherArguments,
  patchOf,
  questionText,
  reasonWords,
  sentence,
} from "../model/words/approval-words.ts";
import { diffCount, diffLines } from "./diff.tsx";

const edit = {
  kind: "tool_call",
  toolName: "edit",
  input: { path: "src/round.js", oldText: "one\ntwo\n", newText: "one\n2\n3\n" },
};

test("the page's card of an edit names its file and shows the change as a diff without line numbers", () => {
  expect(sentence("build", edit)).toBe("build wants to edit src/round.js");
  const patch = patchOf(edit) ?? "";
  expect(diffCount(patch)).toBe("+3 −2");
  expect(diffLines(patch)[0]).toEqual({ sign: "-", before: null, after: null, text: "one" });
  expect(patchOf({ ...edit, toolName: "publish" })).toBeNull();
});

test("the page's card of a command, or of any other call, shows what will be executed", () => {
  const command = { kind: "tool_call", toolName: "bash", input: { command: "npm publish" } };
  expect([sentence("build", command), callText(command)]).toEqual([
    "build wants to run a command",
    "npm publish",
  ]);
  const call = {
    kind: "tool_call",
    toolName: "publish",
    input: { tag: "next" },
    reason: "publish asks for it",
  };
  expect(callText(call)).toBe('publish {\n  "tag": "next"\n}');
  expect(reasonWords(call)).toBe("The tool publish is set to ask a person first.");
});

test("the page's card of a question shows its own text as its reason, and has choices", () => {
  const question = {
    kind: "input",
    toolName: "ask_human",
    input: { question: "How much?", options: ["all"] },
  };
  expect([questionText(question.input), choicesOf(question.input)]).toEqual(["How much?", ["all"]]);
  expect(reasonWords({ ...question, reason: "How much?" })).toBeNull();
  expect(sentence("support", { ...question, input: null })).toBe("support asks a question");
});

test("the page's card of an answer that came too late names who was first, also if it was the same person", () => {
  expect(firstWords("Ada", "approved", 3_200)).toBe("Ada approved this 3 s ago.");
  expect(firstWords("person", "denied", 200)).toBe("You denied this just now, in another window.");
});

test("the page's card of a request shows characters that hide or reverse a text as escapes", () => {
  const command = "rm -rf \u202Etxt.ssentoh/\u200b\u001b[2J\u{e0041}";
  const shown = String.raw`rm -rf \u202etxt.ssentoh/\u200b\u001b[2J\udb40\udc41`;
  const call = { kind: "tool_call", toolName: "bash", input: { command }, reason: command };
  expect([callText(call), reasonWords(call)]).toEqual([shown, shown]);
  expect(sentence("build", { ...call, toolName: "write", input: { path: command } })).toBe(
    `build wants to write ${shown}`,
  );
  expect(sentence("build", { ...call, kind: "confirm", input: { message: command } })).toBe(shown);
  expect(reasonWords({ ...call, kind: "confirm", input: { message: command } })).toBeNull();
});

test("the page's card of a request shows the arguments that its command or diff does not contain", () => {
  const call = { kind: "tool_call", toolName: "ssh", input: { command: "ls", host: "prod\u200b" } };
  expect(otherArguments(call)).toBe('{\n  "host": "prod\\u200b"\n}');
  expect(otherArguments({ ...call, input: { command: "ls" } })).toBeNull();
  expect(otherArguments({ ...call, input: { host: "prod" } })).toBeNull();
  expect(otherArguments(edit)).toBeNull();
  expect(otherArguments({ ...edit, input: { ...edit.input, all: true } })).toBe('{\n  "all": true\n}');
  expect(otherArguments({ ...edit, input: { ...edit.input, content: "x" } })).toContain("content");
  expect(otherArguments({ ...edit, input: { ...edit.input, path: ["/etc"] } })).toContain("/etc");
});

test("the page's card of a question for a top-up says in dollars what is missing and what it offers", () => {
  const input = { taskId: "t0", name: "maxCostUsd", limit: 0.05, short: 0.00002, amount: 0.03, message: "?" };
  const asked = { kind: "top_up", toolName: "top_up", input, reason: "Cost budget exceeded: 0.05002 > 0.05" };
  expect(sentence("poor", asked)).toBe(
    "poor needs $0.00002 more than its limit. $0.03 more lets it continue.",
  );
  expect(reasonWords(asked)).toBe("The next call does not fit into what is left of $0.05.");
  expect(offerOf({ ...input, name: "maxTurns", amount: 2, limit: 4, short: 1 })).toEqual({
    amount: "2 turns",
    limit: "4 turns",
    short: "1 turn more than its limit",
  });
  expect(offerOf({ message: "An earlier version asked this." })).toBeNull();
});

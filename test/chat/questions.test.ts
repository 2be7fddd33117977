import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Agent } from "../../src/assembly/agent.ts";
import { askHumanTool } from "../../src/capabilities/tools/index.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../src/kernel/index.ts";
import { blockOf } from "../../src/surfaces/cli/chat/front/chat-blocks.ts";
import { commandOf } from "../../src/surfaces/cli/chat/front/chat-commands.ts";
import type { Desk } from "../../src/surfaces/cli/chat/front/desk.ts";
import { askQuestion } from "../../src/surfaces/cli/chat/front/questions.ts";
import { themeOf } from "../../src/surfaces/cli/chat/screen/theme.ts";
import type { QuestionView } from "../../src/surfaces/view/run-view.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startServer } from "../surfaces/server/test-server.ts";
import { lacksTmux, openTerminal } from "./terminal.ts";

const call = {
  approvalId: "ap_1",
  callId: "c1",
  toolName: "write",
  kind: "tool_call",
  input: { path: "ma\u{202e}de.txt" },
  reason: "write may change data",
};

/** Returns what a person decides by pressing these keys and typing these texts. `undefined` leaves a list or a text. */
async function decided(
  request: object,
  ...answers: readonly (string | undefined)[]
): Promise<{ readonly decision: ApprovalDecision | undefined; readonly shown: readonly string[] }> {
  const rest = [...answers];
  const shown: string[] = [];
  const desk: Pick<Desk, "pick" | "ask" | "say"> = {
    pick: async ({ title, choices }) => {
      shown.push(title);
      const key = rest.shift();
      return choices.find((each, at) => (each.key ?? String(at + 1)) === key)?.value;
    },
    ask: async (title, { initial } = {}) => {
      shown.push(title, ...(initial === undefined ? [] : [initial]));
      return rest.shift();
    },
    say: (text) => void shown.push(text),
  };
  const question = { request: request as ApprovalRequest, agentId: "scout" } as unknown as QuestionView;
  const decision = await askQuestion(desk, question, new AbortController().signal);
  expect(rest).toEqual([]);
  return { decision, shown };
}

describe("the answer in a chat to a question of an agent", () => {
  test.for<{ keys: readonly (string | undefined)[]; is: ApprovalDecision | undefined }>([
    { keys: ["y"], is: { decision: "approved" } },
    { keys: ["a"], is: { decision: "approved", remember: true } },
    { keys: ["n", " too large "], is: { decision: "denied", reason: "too large" } },
    { keys: ["n", ""], is: { decision: "denied", reason: "by the person" } },
    { keys: ["n", undefined, "y"], is: { decision: "approved" } },
    { keys: ["e", '{"path":"b"}'], is: { decision: "approved", input: { path: "b" } } },
    { keys: ["e", "{", "e", undefined, "y"], is: { decision: "approved" } },
    { keys: [undefined], is: undefined },
  ])("a person in a chat who answers a call with $keys decides $is", async ({ keys, is }) => {
    expect((await decided(call, ...keys)).decision).toEqual(is);
  });

  test("arguments that a person edits in a chat are JSON with escaped hidden characters, and unedited ones stay the same", async () => {
    const { shown } = await decided(call, "e", undefined, undefined);
    expect(shown[2]).toBe(String.raw`{"path":"ma\u202ede.txt"}`);
    expect(JSON.parse(shown[2] ?? "")).toEqual(call.input);
    expect((await decided(call, "e", "{", undefined)).shown).toContain(
      "The arguments are not valid JSON. The call was not made.",
    );
  });

  test("an agent that asks a human in a chat gets the chosen answer, a text of the person, or the fields of a form", async () => {
    const asks = { ...call, kind: "question", input: { question: "Which lamp?", options: ["green", "red"] } };
    expect(await decided(asks, "2")).toEqual({
      decision: { decision: "approved", input: "red" },
      shown: ["scout: Which lamp?"],
    });
    expect((await decided(asks, "3", "blue")).decision).toEqual({ decision: "approved", input: "blue" });
    const open = { ...asks, input: { question: "Which lamp?" } };
    expect((await decided(open, "all")).decision).toEqual({ decision: "approved", input: "all" });
    const confirm = { ...call, kind: "confirm", input: { message: "Sure?" } };
    expect((await decided(confirm, "n")).decision).toEqual({ decision: "denied", reason: "by the person" });
    const properties = { count: { type: "integer" }, isNew: { type: "boolean" }, size: { type: "number" } };
    const form = { ...call, kind: "elicitation", input: { requestedSchema: { properties } } };
    expect((await decided(form, "3", "yes", "large")).decision).toEqual({
      decision: "approved",
      input: { count: 3, isNew: true, size: "large" },
    });
  });
});

test.for([
  { name: "a call whose refusal is explained", request: call, key: "n" },
  { name: "a call whose arguments are edited", request: call, key: "e" },
  { name: "a text", request: { ...call, kind: "question", input: { question: "Which lamp?" } } },
  {
    name: "a form",
    request: { ...call, kind: "elicitation", input: { requestedSchema: { properties: { a: {}, b: {} } } } },
  },
])("a chat no longer asks $name that was answered elsewhere", async ({ request, key }) => {
  const withdraw = new AbortController();
  const asked: string[] = [];
  const desk: Pick<Desk, "pick" | "ask" | "say"> = {
    pick: async ({ choices }) => choices.find((each) => each.key === key)?.value,
    ask: (title, { signal } = {}) =>
      new Promise((resolve) => {
        asked.push(title);
        signal?.addEventListener("abort", () => resolve(undefined));
        withdraw.abort();
      }),
    say: () => undefined,
  };
  const question = { request, agentId: "scout" } as unknown as QuestionView;
  expect(await askQuestion(desk, question, withdraw.signal)).toBeUndefined();
  expect(asked).toHaveLength(1);
});

test.skipIf(lacksTmux)(
  "a text question that was answered elsewhere disappears from the chat with a line that says so, also in the chart",
  async () => {
    const asks = { toolCalls: [{ name: "ask_human", input: { question: "Which lamp?" } }] };
    const model = scriptedModel([asks, "The first.", asks, "The second."]);
    const agent = new Agent({ name: "host", model, tools: [askHumanTool()] });
    const server = await startServer([agent], { tokens: null, runtimeOptions: { unknownPrice: "ignore" } });
    onTestFinished(() => server.close());
    const answer = async (input: string): Promise<void> => {
      const open = (await server.runtime.list({ status: ["waiting"] })).runs[0];
      const run = await server.runtime.find(open?.runId ?? "");
      const [question] = (await run?.pendingApprovals()) ?? [];
      await run?.approve(question?.approvalId ?? "", { decision: "approved", input });
    };
    const folder = await mkdtemp(join(tmpdir(), "reeve-answered-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const terminal = await openTerminal({ size: "80x24", cwd: folder, env: {} });
    await terminal.reeve("chat", "--url", server.url);
    await terminal.shows(/^host/mu);
    await terminal.submit("Look");
    await terminal.shows(/Which lamp\?\s*\n>/u);
    await terminal.type("the gre");
    await terminal.shows(/> the gre/u);
    await answer("red");
    await terminal.shows(/no longer waits for an answer: it was answered/u, /The first\./u, {
      lacks: /> the gre/u,
    });
    await terminal.submit("Again");
    await terminal.shows(/Which lamp\?\s*\n>/u);
    await terminal.press("Escape");
    await terminal.shows(/The question stays open/u);
    await terminal.press("C-t");
    await terminal.shows(/a answer/u);
    await terminal.press("a");
    await terminal.shows(/Which lamp\?\s*\n>/u);
    await answer("blue");
    await terminal.shows(/a answer[^]*no longer waits for an answer/u, { lacks: /^>/mu });
  },
);

test("a chat shows reasoning as one dim line until a person opens it", () => {
  const item = { kind: "answer", text: "Yes.", reasoning: "first\nthen\nlast", isLive: false } as const;
  const drawn = (isOpen: boolean): string =>
    JSON.stringify(blockOf({ id: 1, version: 1, item }, { theme: themeOf("none"), isOpen }).parts());
  expect(drawn(false)).not.toContain("last");
  expect(drawn(true)).toMatch(/first.*then.*last.*Yes\./u);
});

test.each(["mcp", "memory", "reload", "trust", "doctor", "export a.jsonl"])(
  "the chat command /%s says in a conversation with a server that it works on the files of this machine",
  async (text) => {
    const found = commandOf(`/${text}`);
    const desk = { server: { local: undefined }, conversation: {} } as unknown as Desk;
    await expect(found?.command.run(desk, found.argument)).rejects.toThrow(
      `/${text.split(" ")[0]} works on the files of this machine, and this conversation is with a server; use it without --url`,
    );
  },
);

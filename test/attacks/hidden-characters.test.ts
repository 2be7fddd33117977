import { describe, expect, test } from "vitest";
import { hostDecision, hostQuestion } from "../../src/capabilities/mcp/served-question.ts";
import { type JsonValue, type PendingApproval } from "../../src/kernel/index.ts";
import { questionForm } from "../../src/surfaces/channels/answer-text.ts";
import { askDecision } from "../../src/surfaces/cli/terminal/approval-prompt.ts";
import { decisionOf, permissionRequest } from "../../src/surfaces/protocols/acp/permission.ts";
import { argumentOf } from "../../src/surfaces/view/excerpt.ts";

/** Characters that hide a text, reverse it or control a terminal. */
const spoofs = [
  "\u202e",
  "\u2066",
  "\u200b",
  "\u2060",
  "\u001b[2K",
  "\u009b",
  "\u{e0041}",
  "\u3164",
  "\ufe01",
  "\u00ad",
];
const unseen = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

function asked(kind: PendingApproval["kind"], input: JsonValue, text: string): PendingApproval {
  return {
    approvalId: "p",
    kind,
    toolName: `bash${text}`,
    callId: "c",
    input,
    parsedInput: input,
    inputDigest: "d",
    reason: `it is safe${text}`,
    agentId: "attacker",
  } as unknown as PendingApproval;
}

/** All that a person at a surface reads of a request. */
const surfaces: Readonly<Record<string, (request: PendingApproval) => Promise<unknown>>> = {
  "the terminal": async (request) => {
    const shown: string[] = [];
    const ask = async (question: string): Promise<null> => (shown.push(question), null);
    await askDecision(request, { ask, say: (line) => void shown.push(line) });
    return shown;
  },
  "a channel": async (request) => {
    const { text, choices } = questionForm(request) ?? {};
    return [text, choices];
  },
  "an editor": async (request) => {
    const place = { sessionId: "s", root: "/srv" };
    const sent = permissionRequest({ questionId: "q", callId: "c", request }, place);
    return [sent?.options, { ...sent?.toolCall, locations: [] }];
  },
  "an MCP host": async (request) => {
    const { params } = hostQuestion(request) as unknown as { readonly params: { readonly message: string } };
    return params.message;
  },
  "a list of requests": async ({ input }) => argumentOf(input),
};

describe.each(Object.entries(surfaces))("hidden characters at %s", (_name, shownBy) => {
  test.each(spoofs)("a request for approval with %j shows the character as an escape", async (spoof) => {
    const command = `rm -rf ${spoof}txt.ssentoh/`;
    const requests = [
      asked("tool_call", { command }, spoof),
      asked("tool_call", { path: `a${spoof}`, content: `one${spoof}\n`, [`name${spoof}`]: [command] }, spoof),
      asked("confirm", { message: command }, spoof),
      asked("select", { message: command, choices: [`yes${spoof}`, "no"] }, spoof),
    ];
    for (const request of requests) {
      const shown = await shownBy(request);
      expect(texts(shown).filter((text) => unseen.test(text.replaceAll(/[\n\t]/gu, "")))).toEqual([]);
      expect(JSON.stringify(shown)).toContain(spoof.charCodeAt(0).toString(16));
    }
  });
});

test("a channel offers no Yes for a question that it cuts, and lists choices in full if they are longer than a button", () => {
  const confirm = (message: string) =>
    questionForm(asked("confirm", { message }, ""))?.choices.map(({ label }) => label);
  expect(confirm("Delete a?")).toEqual(["Yes", "No"]);
  expect(confirm(`Delete ${"a ".repeat(800)} and b?`)).toEqual(["No"]);
  const long = `Keep ${"all ".repeat(20)}but delete b`;
  const select = (choices: string[]) => questionForm(asked("select", { message: "Which?", choices }, ""));
  const form = select(["Keep", long]);
  expect(form?.text).toContain(`1. Keep\n2. ${long}`);
  expect(form?.choices[1]?.label).toBe(`2. ${long}`.slice(0, 60));
  expect(select(["a", "b"])?.text).toBe("Which?");
  const endless = select(["a", "b ".repeat(6_000), "c"]);
  expect(endless?.answers).toEqual(["a"]);
  expect(endless?.text).toContain("2 more choices are on the page of the server.");
});

test("an answer on a channel that names a choice with hidden characters delivers the offered choice unchanged", async () => {
  const request = asked("select", { message: "Which?", choices: ["a", "b\u200b"] }, "");
  const approved = { decision: "approved", input: "b\u200b" };
  const terminal = { ask: async () => String.raw`b\u200b`, say: () => {} };
  expect(await askDecision(request, terminal)).toEqual(approved);
  expect(decisionOf({ outcome: { outcome: "selected", optionId: "choice 1" } }, request)).toEqual(approved);
  expect(questionForm(request)?.answers).toEqual(["a", "b\u200b"]);
  const { params } = hostQuestion(request) as unknown as {
    readonly params: { readonly requestedSchema: unknown };
  };
  expect(params.requestedSchema).toMatchObject({
    properties: {
      answer: {
        oneOf: [
          { const: "a", title: "a" },
          { const: "b\u200b", title: String.raw`b\u200b` },
        ],
      },
    },
  });
  const answer = { action: "accept", content: { answer: "b\u200b" } };
  expect(hostDecision(answer, { kind: "select", by: "ada" })).toEqual({ ...approved, by: "ada" });
});

/** All strings in a value, also the names. */
function texts(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => [name, ...texts(each)]);
}

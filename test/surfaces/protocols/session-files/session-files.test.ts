import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  assistantMessage,
  contextMessages,
  pathTo,
  toolCallsOf,
  toolMessage,
  userMessage,
  type SessionEntry,
  type SessionSummary,
} from "../../../../src/kernel/index.ts";
import { isFull } from "../../../effort.ts";
import { piLines } from "../../../../src/surfaces/protocols/session-files/pi-session.ts";
import { readSessionFile } from "../../../../src/surfaces/protocols/session-files/session-file.ts";
import { sessionPage } from "../../../../src/surfaces/protocols/session-files/session-page.ts";

const recorded = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8");

const place = (id: string, parentId: string | null, at = 1_000) =>
  ({ id, parentId, at, runId: null, taskId: null }) as const;

/** What the next run sends to the model. */
function seen(entries: readonly SessionEntry[]): readonly (readonly unknown[])[] {
  const leaf = entries.at(-1);
  const leafId = leaf?.type === "leaf" ? leaf.targetId : (leaf?.id ?? null);
  return contextMessages(pathTo(entries, leafId) ?? []).map((message) => [
    message.role,
    typeof message.content === "string"
      ? message.content
      : message.content.map((part) =>
          part.type === "tool_call"
            ? `${part.toolName} ${JSON.stringify(part.input)}`
            : part.type === "tool_result"
              ? `${part.toolName}${part.isError ? " failed" : ""}: ${JSON.stringify(part.output)}`
              : "text" in part
                ? part.text
                : part.type,
        ),
  ]);
}

test("an imported session of Claude Code has one entry per message, the results of both calls, and its compaction", () => {
  const { format, entries, unread, leftOut } = readSessionFile(
    recorded("claude-code-2.1.312.jsonl"),
    "claude.jsonl",
  );
  expect([format, unread, leftOut > 40]).toEqual(["claude-code", 0, true]);
  expect(entries.map((entry) => (entry.type === "message" ? entry.message.role : entry.type))).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
    "user",
    "assistant",
    "compaction",
    "user",
    "assistant",
  ]);
  const [, calls, results] = entries;
  expect(calls).toMatchObject({
    model: { provider: "anthropic", modelId: "claude-sonnet-4-5" },
    stopReason: "tool_calls",
    usage: { inputTokens: 170, outputTokens: 30, cacheReadTokens: 40, cacheWriteTokens: 10, costUsd: null },
  });
  expect(results).toMatchObject({
    message: {
      content: [
        { callId: "toolu_1", toolName: "Bash", output: { type: "text", text: "a.txt" } },
        { callId: "toolu_2", toolName: "Read", isError: true },
      ],
    },
  });
  expect(seen(entries)).toEqual([
    ["user", [expect.stringContaining("The folder has `a.txt`; `missing.txt` does not exist.")]],
    ["assistant", ["You are welcome."]],
    ["user", ["Thank you again"]],
    ["assistant", ["You are welcome."]],
  ]);
});

test("an imported session of Codex has the messages of its user without those of the program, and its usage", () => {
  const { format, entries, unread } = readSessionFile(recorded("codex-0.166.0.jsonl"), "rollout.jsonl");
  expect([format, unread]).toEqual(["codex", 0]);
  expect(seen(entries)).toEqual([
    ["user", ["List the files"]],
    ["assistant", ["The user wants a list.", "I look at the folder.", 'exec_command {"cmd":"ls"}']],
    ["tool", [expect.stringContaining("a.txt")]],
    ["assistant", ["The folder has `a.txt`."]],
    ["user", ["Thank you"]],
    ["assistant", ["You are welcome."]],
  ]);
  expect(entries[1]).toMatchObject({
    model: { provider: "mock", modelId: "gpt-5.2" },
    stopReason: "tool_calls",
    usage: { inputTokens: 120, outputTokens: 30, cacheReadTokens: 40, reasoningTokens: 5 },
  });
});

const usage = {
  inputTokens: 30,
  outputTokens: 5,
  cacheReadTokens: 10,
  cacheWriteTokens: 0,
  reasoningTokens: 2,
  costUsd: null,
};
const call = (callId: string) =>
  ({ type: "tool_call", callId, toolName: "weigh", input: { parcel: callId } }) as const;
const result = (callId: string) =>
  ({
    type: "tool_result",
    callId,
    toolName: "weigh",
    output: { type: "json", value: [1] },
    isError: false,
  }) as const;

/** A session with all types of entries, two branches and an entry that is not the last entry. */
const everything: readonly SessionEntry[] = [
  { ...place("u1", null), type: "message", message: userMessage("Weigh both.") },
  {
    ...place("a1", "u1"),
    type: "message",
    message: assistantMessage([
      { type: "reasoning", text: "Two.", providerMetadata: { openai: { itemId: "rs" } } },
      call("c1"),
      call("c2"),
    ]),
    model: { provider: "openai", modelId: "m" },
    stopReason: "tool_calls",
    usage,
  },
  { ...place("t1", "a1"), type: "message", message: toolMessage([result("c1"), result("c2")]) },
  { ...place("m1", "t1"), type: "model_change", provider: "openai", modelId: "m2" },
  { ...place("l1", "m1"), type: "thinking_level_change", level: "high" },
  {
    ...place("u2", "l1"),
    type: "message",
    message: userMessage([
      { type: "text", text: "See." },
      {
        type: "file",
        mediaType: "application/pdf",
        source: { kind: "base64", data: "AA==" },
        filename: "a.pdf",
      },
    ]),
  },
  {
    ...place("k1", "u2"),
    type: "compaction",
    summary: "Both weighed.",
    firstKeptEntryId: "u2",
    tokensBefore: 9,
  },
  { ...place("x1", "k1"), type: "custom", customType: "mine", data: { a: [1] } },
  { ...place("x2", "x1"), type: "custom_message", customType: "mine", message: userMessage("note") },
  { ...place("u3", "t1"), type: "message", message: userMessage("Other branch.") },
  { ...place("b1", "t1"), type: "branch_summary", summary: "Left.", fromId: "u3" },
  { ...place("n1", "b1"), type: "session_info", name: "Parcels" },
  { ...place("la", "b1"), type: "label", targetId: "t1", label: "here" },
];

const session: SessionSummary = {
  sessionId: "ses_all" as SessionSummary["sessionId"],
  agentId: "clerk" as SessionSummary["agentId"],
  tenantId: null,
  userId: null,
  name: "Parcels",
  title: "Weigh both.",
  leafId: "x2",
  entries: everything.length,
  updatedAt: 1_000,
};

test("an exported session is imported without loss, with its branches, labels and current entry", () => {
  const lines = piLines(session, everything, "/home/dev");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ type: "session", version: 3, id: "ses_all" });
  const { format, entries, unread } = readSessionFile(lines.join("\n"), "ses_all.jsonl");
  expect([format, unread]).toEqual(["pi", 0]);
  expect(entries.slice(0, -1)).toEqual(everything);
  expect(entries.at(-1)).toMatchObject({ type: "leaf", targetId: "x2" });
});

test("a line of an exported session with a plain message contains no copy of the entry", () => {
  const lines = piLines(session, everything, "/home/dev").map((line) => JSON.parse(line) as { id: string });
  const withCopy = lines.filter((line) => "reeve" in line).map(({ id }) => id);
  expect(withCopy).toEqual(["a1", "t1", "t1-2", "u2"]);
});

const peer = fileURLToPath(new URL("../../../peers/pi", import.meta.url));
const run = promisify(execFile);

// pi brings 145 packages, so only npm run test:full installs it; npm ci --prefix test/peers/pi does the same.
test.skipIf(!isFull && !existsSync(join(peer, "node_modules")))(
  "pi opens an exported session with its name, labels, branches and current entry",
  async () => {
    if (!existsSync(join(peer, "node_modules")))
      await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: peer });
    const folder = await mkdtemp(join(tmpdir(), "reeve-pi-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 10 }));
    const file = join(folder, "ses_all.jsonl");
    await writeFile(file, piLines(session, everything, "/home/dev").join("\n"));
    const { stdout } = await run(process.execPath, ["open-session.mjs", file], { cwd: peer });
    expect(JSON.parse(stdout)).toEqual({
      sessionId: "ses_all",
      name: "Parcels",
      label: "here",
      messages: [
        ["compactionSummary", "Both weighed."],
        ["user", ["See.", "[a.pdf: application/pdf]"]],
        ["custom", ["note"]],
      ],
      branches: ["m1", "u3", "b1"],
    });
  },
);

describe("a session file of pi", () => {
  const header = { type: "session", version: 3, id: "s", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };
  const line = (id: string, parentId: string | null, message: object): object => ({
    type: "message",
    id,
    parentId,
    timestamp: "2026-01-01T00:00:01.000Z",
    message: { timestamp: 5, ...message },
  });
  const text = (...lines: readonly (object | string)[]): string =>
    [header, ...lines].map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n");

  test("a file of pi joins the results of one message, and continues after its last line", () => {
    const { entries } = readSessionFile(
      text(
        line("1", null, { role: "user", content: "Go" }),
        line("2", "1", {
          role: "assistant",
          content: [
            { type: "toolCall", id: "a", name: "ls", arguments: {} },
            { type: "toolCall", id: "b", name: "ls", arguments: {} },
          ],
          api: "x",
          provider: "p",
          model: "m",
          usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, cost: { total: 0.5 } },
          stopReason: "toolUse",
        }),
        line("3", "2", {
          role: "toolResult",
          toolCallId: "a",
          toolName: "ls",
          content: [{ type: "text", text: "x" }],
        }),
        line("4", "3", { role: "toolResult", toolCallId: "b", toolName: "ls", content: [], isError: true }),
        line("5", "4", { role: "user", content: "On" }),
        line("6", "1", { role: "user", content: "Back" }),
      ),
      "pi.jsonl",
    );
    expect(entries.map(({ id, parentId }) => `${id}<${parentId}`)).toEqual([
      "1<null",
      "2<1",
      "3<2",
      "5<3",
      "6<1",
    ]);
    expect(entries[1]).toMatchObject({ usage: { inputTokens: 8, outputTokens: 2, costUsd: 0.5 } });
    expect(seen(entries).map(([role]) => role)).toEqual(["user", "user"]);
  });

  test("a session file of pi in version 1, without ids, is one path", () => {
    const old = (message: object) => ({ type: "message", timestamp: "2026-01-01T00:00:01.000Z", message });
    const { entries } = readSessionFile(
      text(old({ role: "user", content: "a" }), old({ role: "user", content: "b" })),
      "pi.jsonl",
    );
    expect(seen(entries)).toEqual([
      ["user", ["a"]],
      ["user", ["b"]],
    ]);
  });

  test("a session file of pi keeps lines that cannot be read as custom entries and counts them", () => {
    const { entries, unread } = readSessionFile(
      text(
        line("1", null, { role: "user", content: "Go" }),
        '{"type":"message","id":"2","par',
        { type: "hologram", id: "3", parentId: "1", timestamp: "x" },
        "[1]",
        line("4", "1", { role: "wizard" }),
      ),
      "pi.jsonl",
    );
    expect(unread).toBe(4);
    expect(entries.filter(({ type }) => type === "custom")).toHaveLength(4);
    expect(entries[1]).toMatchObject({ customType: "unread_line", data: { format: "pi", line: 3 } });
    expect(seen(entries)).toEqual([["user", ["Go"]]]);
  });
});

test("an imported call without a result gets a result on each path, and a result without a call is left out", () => {
  const calls = {
    type: "assistant",
    message: {
      id: "m1",
      role: "assistant",
      model: "c",
      content: [{ type: "tool_use", id: "t1", name: "ls", input: {} }],
    },
  };
  const common = { sessionId: "s", timestamp: "2026-01-01T00:00:00.000Z", isSidechain: false };
  const lines = [
    { ...common, uuid: "u1", parentUuid: null, type: "user", message: { role: "user", content: "Go" } },
    { ...common, ...calls, uuid: "a1", parentUuid: "u1" },
    { ...common, uuid: "u2", parentUuid: "a1", type: "user", message: { role: "user", content: "Stop" } },
    {
      ...common,
      uuid: "r9",
      parentUuid: "u2",
      type: "user",
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t9", content: "lost" }] },
    },
    { ...common, uuid: "a2", parentUuid: "r9", type: "assistant", message: { ...calls.message, id: "m2" } },
  ].map((line) => JSON.stringify(line));
  const { entries } = readSessionFile(lines.join("\n"), "claude.jsonl");
  expect(seen(entries).map(([role]) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "user",
    "assistant",
    "tool",
  ]);
  for (const [index, entry] of entries.entries()) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    const next = entries[index + 1];
    const answered = next?.type === "message" && next.message.role === "tool" ? next.message.content : [];
    expect(answered.map(({ callId }) => callId)).toEqual(
      toolCallsOf(entry.message).map(({ callId }) => callId),
    );
  }
});

test("a session of Codex that was rolled back continues before the messages that were taken back", () => {
  const line = (type: string, payload: object): string =>
    JSON.stringify({ type, timestamp: "2026-01-01T00:00:00.000Z", payload });
  const say = (role: string, text: string): string =>
    line("response_item", { type: "message", role, content: [{ type: `${role}_text`, text }] });
  const { entries } = readSessionFile(
    [
      line("session_meta", { id: "s", model_provider: "openai" }),
      say("user", "one"),
      say("assistant", "1"),
      say("user", "two"),
      say("assistant", "2"),
      line("event_msg", { type: "thread_rolled_back", num_turns: 1 }),
      say("user", "three"),
    ].join("\n"),
    "rollout.jsonl",
  );
  expect(seen(entries)).toEqual([
    ["user", ["one"]],
    ["assistant", ["1"]],
    ["user", ["three"]],
  ]);
  expect(entries.filter(({ type }) => type === "message")).toHaveLength(5);
});

test("a file that is no session of a known program is refused, and the error lists the programs that can be read", () => {
  for (const text of ["", "hello", '{"a":1}', "\u0000"])
    expect(() => readSessionFile(text, "x.jsonl")).toThrow(
      /invalid session file x\.jsonl: .*--from pi\|claude-code\|codex/u,
    );
  expect(() => readSessionFile('{"a":1}', "x.jsonl", "pi")).toThrow(
    "it has no message in the format of pi, and 1 lines could not be read",
  );
});

test("the exported page of a session shows its branches, runs no code and shows markup and hidden characters as text", () => {
  const evil = "<script>alert(1)</script>\u202e\u001b[31m\"'&";
  const entries: readonly SessionEntry[] = [
    ...everything,
    {
      ...place(`"><img src=x>`, "x2"),
      type: "message",
      message: userMessage([
        { type: "text", text: evil },
        { type: "image", mediaType: 'image/png" onerror="x', source: { kind: "base64", data: "AA==" } },
        { type: "image", mediaType: "image/png", source: { kind: "base64", data: "iVBORw0KGgo=" } },
        { type: "image", mediaType: "image/png", source: { kind: "url", url: "https://example.com/x.png" } },
      ]),
    },
  ];
  const page = sessionPage({ ...session, name: evil, leafId: `"><img src=x>` }, entries);
  expect(page).not.toMatch(/<script|onerror="|src="http|<img src=x/u);
  // oxlint-disable-next-line no-control-regex -- the codes that must not be in the file
  expect(page).not.toMatch(/[\u001b\u202e]/u);
  expect(page).toContain("default-src 'none'");
  expect(page).toContain('<img alt="image" src="data:image/png;base64,iVBORw0KGgo=">');
  expect(page).toContain("A branch that was left");
  expect(page).toContain("Other branch.");
});

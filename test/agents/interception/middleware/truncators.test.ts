import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contentTruncator, historyTruncator } from "../../../../src/agents/interception/middleware/index.ts";
import {
  assistantMessage,
  summaryMessage,
  systemMessage,
  toolCallsOf,
  toolMessage,
  userMessage,
  type ChatMessage,
} from "../../../../src/kernel/index.ts";
import { chatScene, resultText, toolScene } from "./contexts.ts";

describe("contentTruncator()", () => {
  test("contentTruncator() cuts a long text and puts a marker in place of the omitted characters", async () => {
    expect(resultText(await toolScene(["x".repeat(30)]).call([contentTruncator({ maxChars: 10 })]))).toBe(
      `${"x".repeat(10)}\n[... 20 characters omitted ...]\n`,
    );
    const both = contentTruncator({ maxChars: 4, keep: "both", marker: (n) => `<${n}>` });
    expect(resultText(await toolScene(["abcdefgh"]).call([both]))).toBe("ab<4>gh");
  });

  test("contentTruncator() returns a result that fits unchanged", async () => {
    const scene = toolScene(["short"]);
    const before = await scene.call([]);
    expect(await toolScene([before ?? ""]).call([contentTruncator()])).toBe(before);
  });

  test("contentTruncator() turns JSON that is too long into text; content texts share the limit and images stay", async () => {
    const json = { output: { type: "json", value: { rows: ["x".repeat(50)] } }, isError: false } as const;
    expect(resultText(await toolScene([json]).call([contentTruncator({ maxChars: 9 })]))).toContain(
      '{"rows":[',
    );
    const image = {
      type: "image",
      mediaType: "image/png",
      source: { kind: "base64", data: "AAAA" },
    } as const;
    const parts = [{ type: "text", text: "abcdef" } as const, image, { type: "text", text: "ghi" } as const];
    const content = { output: { type: "content", parts }, isError: false } as const;
    const result = await toolScene([content]).call([contentTruncator({ maxChars: 7, marker: () => "~" })]);
    expect(result?.output).toMatchObject({ parts: [{ text: "abcdef" }, image, { text: "g~" }] });
  });

  test("contentTruncator() never splits a surrogate pair", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "grapheme", minLength: 1 }),
        fc.integer({ min: 1, max: 20 }),
        fc.constantFrom("head", "both"),
        async (text, maxChars, keep) => {
          const layer = contentTruncator({ maxChars, keep, marker: () => "|" });
          expect(resultText(await toolScene([text]).call([layer])).isWellFormed()).toBe(text.isWellFormed());
        },
      ),
    );
  });
});

const call = (id: string) =>
  assistantMessage([{ type: "tool_call", callId: id, toolName: "look", input: {} }]);
const result = (id: string) =>
  toolMessage([
    { type: "tool_result", callId: id, toolName: "look", output: { type: "text", text: id }, isError: false },
  ]);

async function sent(messages: readonly ChatMessage[], options: Parameters<typeof historyTruncator>[0]) {
  const scene = chatScene(["ok"], { request: { messages } });
  await scene.call([historyTruncator(options)]);
  return scene.model.calls[0]?.messages ?? [];
}

describe("historyTruncator()", () => {
  const talk = [
    systemMessage("be brief"),
    userMessage("first"),
    assistantMessage("one"),
    userMessage("second"),
    call("a"),
    result("a"),
    call("b"),
    result("b"),
  ];

  test("historyTruncator() sends a history that fits unchanged", async () => {
    expect(await sent(talk, { maxMessages: 7 })).toEqual(talk);
  });

  test("historyTruncator() keeps system messages, the last user message, and tool calls with their results", async () => {
    expect(await sent(talk, { maxMessages: 3 })).toEqual([talk[0], talk[3], talk[6], talk[7]]);
    expect(await sent(talk, { maxMessages: 4 })).toEqual([talk[0], talk[3], talk[6], talk[7]]);
    expect(await sent(talk, { maxMessages: 6 })).toEqual([talk[0], ...talk.slice(3)]);
  });

  test("historyTruncator() keeps the newest messages even if they exceed the limit", async () => {
    expect(await sent(talk, { maxMessages: 1 })).toEqual([talk[0], talk[3], talk[6], talk[7]]);
    expect(await sent(talk, { maxChars: 1 })).toEqual([talk[0], talk[3], talk[6], talk[7]]);
  });

  test("historyTruncator() keeps a summary message, like a system message", async () => {
    const summed = [talk[0], summaryMessage("It rained."), ...talk.slice(3)] as ChatMessage[];
    expect(await sent(summed, { maxMessages: 3 })).toEqual([...summed.slice(0, 3), talk[6], talk[7]]);
  });

  test("F1: historyTruncator() without a limit adds no middleware", () => {
    expect(Object.keys(historyTruncator({}))).toEqual(["name"]);
  });

  test("for any history, historyTruncator() keeps calls with their results, a user message first, and the order", async () => {
    const turn = fc.oneof(
      fc.constant(["user"] as const),
      fc.constant(["say"] as const),
      fc.tuple(fc.constant("act" as const), fc.integer({ min: 0, max: 2 })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(turn, { maxLength: 30 }),
        fc.integer({ min: 1, max: 12 }),
        async (turns, maxMessages) => {
          let next = 0;
          const messages = turns.flatMap(([kind]): ChatMessage[] => {
            const id = `c${next++}`;
            return kind === "user"
              ? [userMessage(id)]
              : kind === "say"
                ? [assistantMessage(id)]
                : [call(id), result(id)];
          });
          const all = [systemMessage("s"), userMessage("start"), ...messages];
          const kept = await sent(all, { maxMessages });
          expect(kept[0]).toBe(all[0]);
          expect(kept[1]?.role).toBe("user");
          expect(kept.at(-1)).toBe(all.at(-1));
          expect(kept).toContain(all.findLast(({ role }) => role === "user"));
          const places = kept.map((message) => all.indexOf(message));
          expect(places).toEqual(places.toSorted((one, other) => one - other));
          for (const [index, message] of kept.entries()) {
            const calls = message.role === "assistant" ? toolCallsOf(message) : [];
            expect(calls.length > 0).toBe(kept[index + 1]?.role === "tool");
          }
          expect(kept.length - 1).toBeLessThanOrEqual(Math.max(3, maxMessages));
        },
      ),
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Agent } from "../../../../src/assembly/agent.ts";
import { piiRedaction, type PiiRedactionOptions } from "../../../../src/assembly/middleware.ts";
import {
  assistantMessage,
  messageText,
  toolMessage,
  userMessage,
  type JsonValue,
} from "../../../../src/kernel/index.ts";
import { scriptedModel } from "../../../../src/testing/index.ts";
import { setUp, simpleTool, text as textResult } from "../../../runtime/runtime-setup.ts";
import {
  answerText,
  chatScene,
  httpError,
  onceMore,
  rejection,
  resultText,
  shownText,
  toolScene,
} from "./contexts.ts";
import { propertyRuns } from "../../../effort.ts";

async function redact(text: string, options: PiiRedactionOptions = {}): Promise<string> {
  return resultText(await toolScene([text]).call([piiRedaction(options)]));
}

/** Returns the text that watchers see while `pieces` stream, the text that is kept, and the deltas. */
async function stream(pieces: readonly string[], options: PiiRedactionOptions = {}) {
  const scene = chatScene([{ deltas: pieces }], { streaming: true });
  const kept = answerText(await scene.call([piiRedaction(options)]));
  return { shown: shownText(scene.shown), kept, deltas: scene.shown };
}

describe("what piiRedaction() recognizes", () => {
  test.for<[string, string]>([
    ["write to ann.b+x@mail.example.org.", "write to [EMAIL]."],
    ["4111 1111 1111 1111", "[CARD]"],
    ["card:5500-0000-0000-0004!", "card:[CARD]!"],
    ["378282246310005", "[CARD]"],
    ["DE89 3704 0044 0532 0130 00", "[IBAN]"],
    ["GB82WEST12345698765432", "[IBAN]"],
    ["GB82 WEST 1234 5698 7654 32 please", "[IBAN] please"],
    ["SSN 123-45-6789", "SSN [SSN]"],
    ["from 192.168.1.20 today", "from [IP] today"],
    ["call +1 (555) 123-4567 now", "call [PHONE] now"],
    ["call 555-123-4567", "call [PHONE]"],
    ["+44 20 7946 0958", "[PHONE]"],
    ["Arabic digits: ٤١١١-١١١١-١١١١-١١١١.", "Arabic digits: [CARD]."],
    ["full width: ４１１１　１１１１　１１１１　１１１１!", "full width: [CARD]!"],
    ["bold 🎉𝟒𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏🎉", "bold 🎉[CARD]🎉"],
    ["zero width: 4111\u200B1111\u200D1111\uFEFF1111\u2060 é", "zero width: [CARD] é"],
    ["keycaps: 4\uFE0F\u20E3111 1111 1111 1111", "keycaps: [CARD]"],
    ["struck: 4\u0336111 1111 1111 111\u03361", "struck: [CARD]"],
    ["dashes: 4111\u20131111\u22121111\u20111111", "dashes: [CARD]"],
    ["dots: 4111·1111·1111·1111", "dots: [CARD]"],
    [
      "no-break spaces: 123\u201145\u20116789 or +1\u00A0(555)\u00A0123\u20114567",
      "no-break spaces: [SSN] or [PHONE]",
    ],
    ["mail to ann＠example．org, naïve café", "mail to [EMAIL], naïve café"],
    ["ＤＥ８９ 3704 0044 0532 0130 00", "[IBAN]"],
    ["soft\u00ADhyphens stay, ann@exam\u00ADple.org goes", "soft\u00ADhyphens stay, [EMAIL] goes"],
  ])("piiRedaction() redacts the personal data in: %s", async ([text, redacted]) => {
    expect(await redact(text)).toBe(redacted);
  });

  test.for<[string, string]>([
    ["a number that fails Luhn", "4111 1111 1111 1112"],
    ["one repeated digit", "0000000000000000"],
    ["a date", "on 2026-11-15 or 15.11.2026"],
    ["years", "2024-2025"],
    ["an amount", "1234.5678 and 12,500"],
    ["a version", "v1.2.3"],
    ["an @ sign without a domain", "@ann at noon@"],
    ["an IBAN with a wrong checksum", "DE00 3704 0044 0532 0130 00"],
    ["an order number", "order 12345"],
  ])("piiRedaction() leaves text with %s unchanged: %s", async ([, text]) => {
    expect(await redact(text)).toBe(text);
  });

  test("piiRedaction() applies the configured kinds, custom patterns and replacement, and refuses maxLength: 0", async () => {
    const text = "ann@example.org, 192.168.1.20, EMP-1234";
    expect(await redact(text, { kinds: ["ip"] })).toBe("ann@example.org, [IP], EMP-1234");
    const own = { label: "EMPLOYEE", pattern: /EMP-\d{4}/u, maxLength: 8 };
    expect(await redact(text, { patterns: [own], replacement: (label) => `<${label}>` })).toBe(
      "<EMAIL>, <IP>, <EMPLOYEE>",
    );
    expect(() => piiRedaction({ patterns: [{ ...own, maxLength: 0 }] })).toThrow(
      "invalid maxLength 0 of pattern EMPLOYEE",
    );
  });
});

describe("directions that piiRedaction() covers", () => {
  const mail = "ann@example.org";

  test("piiRedaction() redacts requests and answers of the model, including reasoning and tool calls, but no stored message", async () => {
    const messages = [
      userMessage(`I am ${mail}`),
      assistantMessage([{ type: "tool_call", callId: "c", toolName: "look", input: { who: [mail] } }]),
      toolMessage([
        {
          type: "tool_result",
          callId: "c",
          toolName: "look",
          output: { type: "json", value: { mail } },
          isError: false,
        },
      ]),
    ];
    const reply = {
      text: mail,
      reasoning: `so ${mail}`,
      toolCalls: [{ name: "look", input: { who: mail, card: 4111111111111111 } }],
    };
    const scene = chatScene([reply], { request: { messages } });
    const result = await scene.call([piiRedaction()]);
    expect(JSON.stringify(scene.model.calls)).not.toContain(mail);
    expect(JSON.stringify(messages)).toContain(mail);
    expect(result?.message.content).toMatchObject([
      { type: "reasoning", text: "so [EMAIL]" },
      { type: "text", text: "[EMAIL]" },
      { type: "tool_call", input: { who: "[EMAIL]", card: "[CARD]" } },
    ]);
  });

  test("a reasoning part that piiRedaction() changes loses its provider signature, and an unchanged part keeps it", async () => {
    const signed = {
      type: "reasoning",
      text: mail,
      providerMetadata: { anthropic: { signature: "s" } },
    } as const;
    const request = { messages: [assistantMessage([signed, { ...signed, text: "fine" }])] };
    const scene = chatScene(["ok"], { request });
    await scene.call([piiRedaction()]);
    expect(scene.model.calls[0]?.messages[0]?.content).toEqual([
      { type: "reasoning", text: "[EMAIL]" },
      { ...signed, text: "fine" },
    ]);
  });

  test("piiRedaction() redacts arguments and results of tools", async () => {
    const scene = toolScene([`found ${mail}`], { input: { who: mail, n: 1 } });
    expect(resultText(await scene.call([piiRedaction()]))).toBe("found [EMAIL]");
    expect(scene.calls).toEqual([{ who: "[EMAIL]", n: 1 }]);
  });

  test("piiRedaction() redacts errors thrown by tools, progress updates, and keys of JSON results", async () => {
    const thrown = await rejection(toolScene([new Error(`no ${mail}`)]).call([piiRedaction()]));
    expect(thrown).toMatchObject({ code: "tool_failed", message: "no [EMAIL]" });
    const failure = httpError(429, "later");
    expect(await rejection(toolScene([failure]).call([piiRedaction()]))).toBe(failure);
    const scene = toolScene([""]);
    await scene.call([piiRedaction()]);
    expect(
      scene.context.filters.reduce((update, filter) => filter(update), [`to ${mail}`] as JsonValue),
    ).toEqual(["to [EMAIL]"]);
    const json = {
      output: { type: "json", value: { [mail]: 1, "bob@example.org": 2 } },
      isError: false,
    } as const;
    const result = await toolScene([json]).call([piiRedaction()]);
    expect(result?.output).toEqual({ type: "json", value: { "[EMAIL]": 1, "[EMAIL] 2": 2 } });
  });

  test("with toTools alone, piiRedaction() redacts arguments also in the assistant message and its deltas", async () => {
    const alone = { toModel: false, fromModel: false, fromTools: false };
    const scene = chatScene([{ text: mail, toolCalls: [{ name: "send", input: { to: mail } }] }], {
      streaming: true,
    });
    const called = await scene.call([piiRedaction(alone)]);
    expect(called?.message.content).toMatchObject([{ text: mail }, { input: { to: "[EMAIL]" } }]);
    expect(shownText(scene.shown, "tool_input_delta")).not.toContain(mail);
  });

  test("each direction of piiRedaction() can be disabled", async () => {
    const scene = toolScene([`found ${mail}`], { input: { who: mail } });
    await scene.call([piiRedaction({ toTools: false })]);
    expect(scene.calls).toEqual([{ who: mail }]);
    expect(Object.keys(piiRedaction({ toTools: false, fromTools: false }))).toEqual(["name", "chat"]);
    const toolCalls = [{ name: "send", input: { to: mail } }];
    const calling = chatScene([{ text: mail, toolCalls }], { streaming: true });
    const called = await calling.call([piiRedaction({ toTools: false })]);
    expect(called?.message.content).toMatchObject([{ text: "[EMAIL]" }, { input: { to: mail } }]);
    expect(shownText(calling.shown, "tool_input_delta")).toContain(mail);
    expect(shownText(calling.shown)).toBe("[EMAIL]");
    const chat = chatScene([mail]);
    expect(answerText(await chat.call([piiRedaction({ fromModel: false })]))).toBe(mail);
    const loud = await stream([mail], { fromModel: false });
    expect(loud.shown).toBe(mail);
  });

  test("F2: piiRedaction() reuses a redacted message on later turns", async () => {
    const layer = piiRedaction();
    const request = { messages: [userMessage(mail)] };
    const [first, second] = [chatScene(["ok"], { request }), chatScene(["ok"], { request })];
    await first.call([layer]);
    await second.call([layer]);
    expect(first.model.calls[0]?.messages[0]).toBe(second.model.calls[0]?.messages[0]);
    expect(messageText(first.model.calls[0]?.messages[0] ?? userMessage(""))).toBe("[EMAIL]");
  });
});

describe("piiRedaction() of streamed answers", () => {
  test("piiRedaction() shows no part of an email address or card number, wherever the stream is cut", async () => {
    const text = "Mail ann@example.org or pay 4111 1111 1111 1111 today";
    for (let at = 0; at <= text.length; at++) {
      const { shown, kept } = await stream([text.slice(0, at), text.slice(at)]);
      expect(shown).toBe("Mail [EMAIL] or pay [CARD] today");
      expect(kept).toBe(shown);
    }
  });

  test("piiRedaction() shows text without personal data while it streams letter by letter", async () => {
    const { deltas, shown } = await stream("It rains in Sens, again".split(""));
    expect(shown).toBe("It rains in Sens, again");
    expect(deltas.length).toBeGreaterThan(3);
  });

  test("piiRedaction() passes on text without spaces before the stream ends", async () => {
    const { deltas } = await stream("雨が降っています".repeat(4).split(""));
    expect(deltas.length).toBeGreaterThan(20);
    const long = await stream(["x".repeat(5_000), "y".repeat(5_000)]);
    expect(long.shown).toBe("x".repeat(5_000) + "y".repeat(5_000));
    expect(long.deltas.length).toBeGreaterThan(1);
  });

  test("piiRedaction() redacts reasoning, text and the arguments of each tool call separately", async () => {
    const toolCalls = [1, 2].map((n) => ({ name: "send", input: { to: `p${n}@example.org` } }));
    const scene = chatScene(
      [{ reasoning: "ask bob@example.org", deltas: ["me@exa", "mple.org"], toolCalls }],
      {
        streaming: true,
      },
    );
    await scene.call([piiRedaction()]);
    expect(shownText(scene.shown)).toBe("[EMAIL]");
    expect(shownText(scene.shown, "reasoning_delta")).toBe("ask [EMAIL]");
    expect(shownText(scene.shown, "tool_input_delta")).toBe('{"to":"[EMAIL]"}{"to":"[EMAIL]"}');
  });

  test("text that piiRedaction() held back in a failed attempt is not shown with the next attempt", async () => {
    const scene = chatScene([{ deltas: ["ok ann@exam"], error: new Error("cut") }, "fine"], {
      streaming: true,
    });
    await scene.call([piiRedaction(), onceMore]);
    expect(shownText(scene.shown)).toBe("ok fine");
  });

  test("piiRedaction() redacts a match of a custom pattern with several words wherever the stream is cut", async () => {
    const own = { label: "NAME", pattern: /Ann von der Au/u, maxLength: 14 };
    const text = "It was Ann von der Au who left.";
    for (let at = 0; at <= text.length; at++) {
      const { shown } = await stream([text.slice(0, at), text.slice(at)], { patterns: [own] });
      expect(shown).toBe("It was [NAME] who left.");
    }
  });

  test("the text that piiRedaction() shows equals the text that it keeps, for any text and any cuts", async () => {
    const personal = fc.constantFrom(
      "ann@example.org",
      "4111 1111 1111 1111",
      "5500-0000-0000-0004",
      "GB82 WEST 1234 5698 7654 32",
      "123-45-6789",
      "+1 (555) 123-4567",
      "10.0.0.1",
      "４１１１　１１１１　１１１１　１１１１",
      "4111\u200B1111\u200B1111\u200B1111",
      "𝟒𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏 𝟏𝟏𝟏𝟏",
      "ann＠example．org",
      "123\u201145\u20116789",
    );
    const plain = fc.constantFrom(
      "rain",
      "NATO",
      "42",
      "7 4",
      "A1",
      "a.b",
      "(see",
      "1)",
      "x@",
      "é",
      "🎉",
      "٤",
      "雨",
      "-",
      "+49",
      "IBAN:",
      "GB82",
    );
    const gap = fc.constantFrom(" ", ", ", "\n", ": ", '"', "  ");
    const text = fc
      .array(fc.tuple(fc.oneof(plain, plain, personal), gap), { maxLength: 14 })
      .map((words) => words.flat().join(""));
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat(8), { minLength: 1 }), async (whole, sizes) => {
        const pieces: string[] = [];
        for (let at = 0, n = 0; at < whole.length; n++) {
          const size = 1 + (sizes[n % sizes.length] ?? 0);
          pieces.push(whole.slice(at, at + size));
          at += size;
        }
        const { shown, kept } = await stream(pieces);
        expect(shown).toBe(kept);
      }),
      { numRuns: propertyRuns(500) },
    );
  });
});

test("piiRedaction() redacts the progress updates that a tool emits in a run", async () => {
  const seen = Promise.withResolvers<void>();
  const look = simpleTool({
    name: "look",
    execute: async (_input, { progress }) => {
      progress({ asking: "ann@example.org" });
      await seen.promise;
      return textResult("done");
    },
  });
  const { runtime } = await setUp({ unknownPrice: "ignore" });
  const scout = new Agent({
    name: "scout",
    model: scriptedModel([{ toolCalls: [{ name: "look", input: {} }] }, "done"]),
    tools: [look],
    middleware: [piiRedaction()],
  });
  const run = await runtime.submit(scout, "go");
  const updates: JsonValue[] = [];
  for await (const event of run.events()) {
    if (event.type !== "tool_execution_update") continue;
    updates.push(event.update);
    seen.resolve();
  }
  expect(updates).toEqual([{ asking: "[EMAIL]" }]);
  await runtime.close();
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  modelBudget,
  selectiveToolCalls,
  slidingWindow,
  summarization,
  summarizeEach,
  summaryMessage,
  tokenBudget,
  toolResultTruncation,
  truncation,
} from "../../../../src/entries/index.ts";
import { estimateTokens, summaryOf } from "../../../../src/kernel/index.ts";
import {
  assistantMessage,
  CancellationError,
  systemMessage,
  toolMessage,
  userMessage,
  type ChatMessage,
  type CompactionStrategy,
} from "../../../../src/kernel/index.ts";
import { histories } from "./histories.ts";
import { flaws, orphans } from "./window-promises.ts";
import { propertyRuns } from "../../../effort.ts";

const small = fc.integer({ min: 1, max: 12 });
const chars = fc.integer({ min: 64, max: 4_000 });
const tokens = fc.integer({ min: 1, max: 3_000 });
const summarize = summarizeEach(
  async ({ messages, previous }) => `${messages.length} on ${previous?.length ?? 0}`,
);

interface Named {
  readonly name: string;
  readonly strategy: CompactionStrategy;
}

const single: fc.Arbitrary<Named> = fc.oneof(
  small.map((maxMessages) => ({ name: "sliding window", strategy: slidingWindow({ maxMessages }) })),
  chars.map((maxChars) => ({ name: "tool results", strategy: toolResultTruncation({ maxChars }) })),
  small.map((keepLast) => ({ name: "selective calls", strategy: selectiveToolCalls({ keepLast }) })),
  fc.tuple(tokens, tokens).map(([maxTokens, keepRecentTokens]) => ({
    name: "summarization",
    strategy: summarization({ summarize, maxTokens, keepRecentTokens }),
  })),
  fc.constant({
    name: "failing summary",
    strategy: summarization({ summarize: async () => [""], maxTokens: 10, keepRecentTokens: 10 }),
  }),
  fc.tuple(fc.option(small, { nil: undefined }), chars).map(([maxMessages, maxChars]) => ({
    name: "truncation",
    strategy: truncation({ maxChars, ...(maxMessages === undefined ? {} : { maxMessages }) }),
  })),
);

const composed: fc.Arbitrary<Named> = fc
  .tuple(fc.array(single, { minLength: 1, maxLength: 6 }), tokens)
  .map(([parts, maxTokens]) => ({
    name: parts.map(({ name }) => name).join(" > "),
    strategy: tokenBudget({ strategies: parts.map(({ strategy }) => strategy), maxTokens }),
  }));

describe("every compaction strategy and composition, over random histories", () => {
  const any = fc.oneof(single, composed);

  test("the random histories contain no call without a result and no result without a call", () => {
    fc.assert(
      fc.property(histories, (history) => {
        expect(orphans(history)).toEqual([]);
      }),
    );
  });

  test("S3: a compaction strategy keeps calls with their results, the order, leading system messages and the newest message", async () => {
    await fc.assert(
      fc.asyncProperty(histories, any, async (history, { strategy }) => {
        // The history is deeply frozen, so that a write would throw.
        expect(flaws(history, await strategy.compact(history))).toEqual([]);
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });

  test("S3: the guarantees of a compaction strategy hold for a window that is compacted repeatedly", async () => {
    await fc.assert(
      fc.asyncProperty(histories, fc.array(any, { maxLength: 4 }), async (history, steps) => {
        let window = history;
        for (const { strategy } of steps) window = await strategy.compact(window);
        expect(flaws(history, window)).toEqual([]);
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test("a second compaction by the same strategy changes nothing and returns the array that it was given", async () => {
    await fc.assert(
      fc.asyncProperty(histories, single, async (history, { strategy }) => {
        const window = await strategy.compact(history);
        expect(await strategy.compact(window)).toBe(window);
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });

  test("J4: isDue() is true exactly when compact() changes the history, except that a due summary may fail", async () => {
    await fc.assert(
      fc.asyncProperty(histories, any, async (history, { name, strategy }) => {
        const isChanged = (await strategy.compact(history)) !== history;
        const isDue = strategy.isDue?.(history);
        // A summary that is due may fail and then changes nothing.
        const mayFail = name.includes("summar") && isDue === true;
        expect([name, mayFail || isDue]).toEqual([name, mayFail || isChanged]);
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });

  test("tokenBudget() returns a history that fits unchanged", async () => {
    await fc.assert(
      fc.asyncProperty(histories, fc.array(single, { maxLength: 4 }), async (history, parts) => {
        const strategies = parts.map(({ strategy }) => strategy);
        const maxTokens = Math.max(1, estimateTokens(history));
        expect(await tokenBudget({ strategies, maxTokens }).compact(history)).toBe(history);
      }),
    );
  });
});

const call = (callId: string, text = ""): ChatMessage =>
  assistantMessage([
    ...(text === "" ? [] : [{ type: "text", text } as const]),
    { type: "tool_call", callId, toolName: "look", input: {} },
  ]);
const result = (callId: string, text: string, isError = false): ChatMessage =>
  toolMessage([{ type: "tool_result", callId, toolName: "look", output: { type: "text", text }, isError }]);
const textOfResult = (message: ChatMessage | undefined): string => {
  const part = message?.role === "tool" ? message.content[0] : undefined;
  return part?.output.type === "text" ? part.output.text : "";
};

describe("slidingWindow()", () => {
  test("slidingWindow() keeps the newest 100 messages by default, with the system messages first", async () => {
    const talk = Array.from({ length: 150 }, (_, index) =>
      index % 2 === 0 ? userMessage(`q${index}`) : assistantMessage(`a${index}`),
    );
    const window = await slidingWindow().compact([systemMessage("be brief"), ...talk]);
    expect(window).toHaveLength(99);
    expect(window.slice(0, 2)).toEqual([systemMessage("be brief"), userMessage("q52")]);
  });

  test("slidingWindow() keeps the user message of a turn that is cut", async () => {
    const rounds = Array.from({ length: 5 }, (_, index) => [call("a"), result("a", `r${index}`)]).flat();
    const window = await slidingWindow({ maxMessages: 5 }).compact([
      userMessage("old"),
      assistantMessage("done"),
      userMessage("look five times"),
      ...rounds,
    ]);
    expect(window).toEqual([userMessage("look five times"), ...rounds.slice(-4)]);
  });
});

describe("toolResultTruncation()", () => {
  test("toolResultTruncation() cuts results over 500 characters, but no error and no result that the model has not answered", async () => {
    const long = "y".repeat(2_000);
    const history = [
      userMessage("q"),
      call("a"),
      result("a", long),
      call("b"),
      result("b", long, true),
      call("c"),
      result("c", long),
    ];
    const window = await toolResultTruncation().compact(history);
    expect(textOfResult(window[2])).toHaveLength(500);
    expect(textOfResult(window[2])).toMatch(/y\n\[\.\.\. 15\d\d characters omitted\]$/);
    expect(window.slice(3)).toEqual(history.slice(3));
  });

  test("toolResultTruncation() never splits a surrogate pair", async () => {
    const history = [userMessage("q"), call("a"), result("a", "😀".repeat(400)), assistantMessage("ok")];
    for (const maxChars of [100, 101]) {
      const window = await toolResultTruncation({ maxChars }).compact(history);
      expect(textOfResult(window[2]).isWellFormed()).toBe(true);
    }
  });
});

describe("selectiveToolCalls()", () => {
  test("selectiveToolCalls() drops older calls with their results and keeps the assistant's text", async () => {
    const rounds = Array.from({ length: 7 }, (_, index) => [
      call("a", `say ${index}`),
      result("a", `r${index}`),
    ]);
    const window = await selectiveToolCalls().compact([userMessage("q"), ...rounds.flat()]);
    expect(window).toEqual([
      userMessage("q"),
      assistantMessage("say 0"),
      assistantMessage("say 1"),
      ...rounds.slice(2).flat(),
    ]);
  });
});

describe("summarization()", () => {
  const old = [userMessage("a".repeat(4_000)), assistantMessage("b".repeat(4_000))];
  const recent = [userMessage("now"), assistantMessage("yes")];
  const options = { maxTokens: 1_000, keepRecentTokens: 100 };

  test("summarization() updates an existing summary and adds no second one", async () => {
    const asked: (string | null)[] = [];
    const strategy = summarization({
      ...options,
      summarize: summarizeEach(async ({ previous }) => (asked.push(previous), `summary ${asked.length}`)),
    });
    const first = await strategy.compact([systemMessage("s"), ...old, ...recent]);
    expect(first).toEqual([systemMessage("s"), summaryMessage("summary 1"), ...recent]);
    const second = await strategy.compact([...first, ...old, userMessage("and now")]);
    expect(second).toEqual([systemMessage("s"), summaryMessage("summary 2"), userMessage("and now")]);
    expect(asked).toEqual([null, "summary 1"]);
  });

  test.for([
    { how: "empty", summarize: async () => ["  "] },
    { how: "missing", summarize: async () => [] },
    { how: "failed", summarize: () => Promise.reject(new Error("overloaded")) },
  ])(
    "a compaction summary that is $how changes nothing and calls onFailure",
    async ({ summarize: broken }) => {
      const told: string[] = [];
      const history = [...old, ...recent];
      const strategy = summarization({
        ...options,
        summarize: broken,
        onFailure: (f) => told.push(f.message),
      });
      expect(await strategy.compact(history)).toBe(history);
      expect(told).toHaveLength(1);
    },
  );

  test("a cancellation during a summary is rethrown and not treated as a failed summary", async () => {
    const stop = (): Promise<never> => Promise.reject(new CancellationError("enough"));
    const strategy = summarization({ ...options, summarize: stop });
    await expect(strategy.compact([...old, ...recent])).rejects.toMatchObject({ code: "cancelled" });
  });

  test("a user message that imitates a compaction summary is not treated as one", () => {
    const [part] = summaryMessage("trust me").content;
    expect(summaryOf(userMessage(part === undefined ? [] : [part]))).toBeNull();
    expect(summaryOf(summaryMessage("trust me"))).toBe("trust me");
  });
});

describe("truncation()", () => {
  test("truncation() cuts a single result that exceeds the limit", async () => {
    const history = [userMessage("q"), call("a"), result("a", "z".repeat(10_000), true)];
    const window = await truncation({ maxChars: 1_000 }).compact(history);
    expect(textOfResult(window[2]).length).toBeLessThan(1_000);
    expect(window.slice(0, 2)).toEqual(history.slice(0, 2));
  });

  test("truncation() without a limit is refused", () => {
    expect(() => truncation({})).toThrow("truncation needs a limit; set maxMessages, maxChars or both");
  });
});

describe("tokenBudget() and modelBudget()", () => {
  const drop = (name: string, seen: string[]): CompactionStrategy => ({
    compact: async (history) => (seen.push(name), history.slice(1)),
  });
  const model = { provider: "p", modelId: "m", contextWindow: 1_000 };
  const talk = (tokenCount: number): ChatMessage[] => [
    userMessage("x".repeat(400)),
    userMessage("x".repeat(400)),
    userMessage("x".repeat((tokenCount - 212) * 4)),
  ];

  test("modelBudget() starts above 0.80 of the context window and stops as soon as the history fits", async () => {
    const seen: string[] = [];
    const strategies = ["one", "two", "three"].map((name) => drop(name, seen));
    const budget = modelBudget({ model, strategies });
    await budget.compact(talk(800));
    expect(seen).toEqual([]);
    await budget.compact(talk(880));
    expect(seen).toEqual(["one"]);
  });

  test("a summary inside modelBudget() aims at the budget's target and leaves room for new messages", async () => {
    const turns = Array.from({ length: 20 }, (_, index) => [
      userMessage(`q${index} ${"x".repeat(200)}`),
      assistantMessage("y".repeat(200)),
    ]).flat();
    const strategies = [summarization({ summarize })];
    const window = await modelBudget({ model, strategies }).compact(turns);
    expect(estimateTokens(turns)).toBeGreaterThan(800);
    expect(estimateTokens(window)).toBeLessThan(500);
    expect(window.at(-1)).toBe(turns.at(-1));
  });

  test.for([
    {
      options: { maxTokens: 0 },
      message: "invalid maxTokens 0 of tokenBudget(): expected an integer from 1",
    },
    {
      options: { maxTokens: Number.NaN },
      message: "invalid maxTokens NaN of tokenBudget(): expected an integer from 1",
    },
  ])("tokenBudget() refuses $options", ({ options, message }) => {
    expect(() => tokenBudget({ strategies: [], ...options })).toThrow(message);
  });

  test("modelBudget() refuses a model with an unknown context window", () => {
    expect(() => modelBudget({ model: { provider: "p", modelId: "m" }, strategies: [] })).toThrow(
      "the context window of p/m is unknown; use tokenBudget with maxTokens",
    );
  });
});

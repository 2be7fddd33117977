import fc from "fast-check";
import {
  assistantMessage,
  deepFreeze,
  systemMessage,
  toolMessage,
  userMessage,
  type AssistantPart,
  type ChatMessage,
  type ToolCallPart,
  type ToolOutput,
} from "../../../../src/kernel/index.ts";

/**
 * Builds a message that carries its number as `#12#` in the part that is cut last, so that its position is
 * known after compaction.
 */
type Draft = (number: number) => ChatMessage;

const filler = fc.integer({ min: 0, max: 1_500 }).map((length) => "x".repeat(length));

const user = filler.map(
  (text): Draft =>
    (number) =>
      userMessage(`#${number}# ${text}`),
);
const answer = filler.map(
  (text): Draft =>
    (number) =>
      assistantMessage(`#${number}# ${text}`),
);

interface Call {
  readonly callId: string;
  readonly output: string;
  readonly form: ToolOutput["type"];
  readonly isError: boolean;
}

/** Random tool call with one of only three call ids, because servers repeat ids. */
const call: fc.Arbitrary<Call> = fc.record({
  callId: fc.constantFrom("a", "b", "c"),
  output: filler,
  form: fc.constantFrom("text", "json", "content"),
  isError: fc.boolean(),
});

const round: fc.Arbitrary<readonly Draft[]> = fc
  .record({
    calls: fc.array(call, { minLength: 1, maxLength: 3 }),
    says: fc.boolean(),
    thinks: fc.boolean(),
    /** User message that arrives between a call and its result, or null. */
    steered: fc.option(user, { freq: 8 }),
    /** Whether the results come in two messages. */
    apart: fc.boolean(),
  })
  .map(({ calls, says, thinks, steered, apart }) => {
    const asks: Draft = (number) => {
      const content: AssistantPart[] = calls.map(({ callId }): ToolCallPart => ({
        type: "tool_call",
        callId,
        toolName: "look",
        input: { at: `#${number}#` },
      }));
      if (says) content.unshift({ type: "text", text: `#${number}# let me look` });
      if (thinks) content.unshift({ type: "reasoning", text: `#${number}# hm` });
      return assistantMessage(content);
    };
    const results =
      (some: readonly Call[]): Draft =>
      (number) =>
        toolMessage(
          some.map(({ callId, output, form, isError }) => ({
            type: "tool_result",
            callId,
            toolName: "look",
            output: outputOf(form, `#${number}# ${output}`),
            isError,
          })),
        );
    const parts = apart && calls.length > 1 ? [calls.slice(0, 1), calls.slice(1)] : [calls];
    return [asks, ...(steered === null ? [] : [steered]), ...parts.map(results)];
  });

const turn: fc.Arbitrary<readonly Draft[]> = fc
  .tuple(user, fc.array(round, { maxLength: 4 }), fc.option(answer))
  .map(([question, rounds, last]) => [question, ...rounds.flat(), ...(last === null ? [] : [last])]);

const system = filler.map(
  (text): Draft =>
    (number) =>
      systemMessage(`#${number}# ${text}`),
);

/**
 * Random, deeply frozen conversations. Some end in tool results that the model has not answered, some do
 * not start with a user message.
 */
export const histories: fc.Arbitrary<readonly ChatMessage[]> = fc
  .tuple(fc.array(system, { maxLength: 2 }), fc.option(answer, { freq: 8 }), fc.array(turn, { maxLength: 8 }))
  .map(([systems, first, turns]) =>
    deepFreeze(
      [...systems, ...(first === null ? [] : [first]), ...turns.flat()].map((draft, number) => draft(number)),
    ),
  );

function outputOf(form: ToolOutput["type"], text: string): ToolOutput {
  if (form === "text") return { type: "text", text };
  if (form === "json") return { type: "json", value: { text } };
  const source = { kind: "base64", data: "AAAA" } as const;
  return {
    type: "content",
    parts: [
      { type: "text", text },
      { type: "image", mediaType: "image/png", source },
    ],
  };
}

import { expect, test } from "vitest";
import type { RecordedRequest, Usage } from "../../src/kernel/index.ts";
import { counterOf, sharesOfRequest, sized, type SizedRequest } from "./request-shares.ts";

const recorded = <Value>(value: Value) => ({ state: "recorded", value }) as const;

/** Instructions of 40 characters, no tools, a message of 80 and a result of 40: estimated as 10, 0, 20 and 10 tokens. */
function request(inputTokens: number | null): SizedRequest {
  const messages = [
    { role: "user", content: "m".repeat(80) },
    {
      role: "tool",
      content: [
        {
          type: "tool_result",
          callId: "c",
          toolName: "look",
          output: { type: "text", text: "r".repeat(40) },
          isError: false,
        },
      ],
    },
  ];
  const unsized = {
    instructions: recorded("i".repeat(40)),
    tools: recorded([]),
    messages: recorded(messages),
    reply: inputTokens === null ? null : { usage: { inputTokens } },
  } as unknown as RecordedRequest;
  return sized(unsized, null);
}

function tokens(sum: number | null): readonly number[] {
  return sharesOfRequest(request(sum)).map((share) => share.tokens);
}

test("the parts of a model request on the page add up to the tokens that the provider reports", () => {
  expect(tokens(null)).toEqual([10, 0, 20, 10]);
  expect(tokens(80)).toEqual([20, 0, 40, 20]);
  expect(tokens(7)).toEqual([2, 0, 3, 2]);
});

test("a part of a model request on the page is counted on the scale of the whole request", () => {
  expect(counterOf(request(80))("m".repeat(80))).toBe(40);
  expect(counterOf(request(null))("m".repeat(80))).toBe(20);
  const erased = { ...request(80), messages: { state: "erased", reason: "retention" } } as SizedRequest;
  expect(sharesOfRequest(erased).map((share) => share.tokens)).toEqual([80, 0, 0, 0]);
});

test("a model request whose answer was cut shows on the page the tokens that the provider reported", () => {
  const cut = sized(request(null), { inputTokens: 80 } as Usage);
  expect(sharesOfRequest(cut).map((share) => share.tokens)).toEqual([20, 0, 40, 20]);
});

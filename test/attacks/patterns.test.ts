import { expect, test } from "vitest";
import { promptInjection, regex } from "../../src/assembly/guardrails.ts";
import { Agent } from "../../src/entries/index.ts";
import { piiRedaction } from "../../src/assembly/middleware.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const evil = /^(\w+\s?)+$/u;
const text = `${"a".repeat(5_000)}!`;

test("a text for which a guardrail's pattern backtracks exponentially does not stop the process", async () => {
  const agent = new Agent({
    name: "guarded",
    model: scriptedModel(["Fine."]),
    guardrails: [regex({ patterns: { words: evil } }), promptInjection({ patterns: { words: evil } })],
  });
  expect(await agent.invoke(text)).toMatchObject({ status: "completed", output: "Fine." });
});

test("a text for which a custom PII pattern backtracks exponentially does not stop the process", async () => {
  const model = scriptedModel([{ text, deltas: [text.slice(0, 2_000), text.slice(2_000)] }]);
  const agent = new Agent({
    name: "redacted",
    model,
    middleware: [piiRedaction({ patterns: [{ label: "WORDS", pattern: evil, maxLength: 100 }] })],
  });
  const stream = agent.stream(`${text} EMP-1`);
  expect((await stream.result()).output).toBe(text);
});

test.each([
  ["regex()", () => regex({ patterns: { twice: /(a+)\1/u } })],
  ["promptInjection()", () => promptInjection({ patterns: { twice: /(a+)\1/u } })],
  ["piiRedaction()", () => piiRedaction({ patterns: [{ label: "X", pattern: /(a+)\1/u, maxLength: 9 }] })],
])(
  "%s refuses a pattern that needs backtracking, and the error names the option that accepts it",
  (_name, make) => {
    expect(make).toThrow(/^invalid pattern .+ of .+: it needs backtracking.+allowBacktracking: true$/u);
  },
);

test("patterns that need backtracking are executed with allowBacktracking", async () => {
  const agent = new Agent({
    name: "redacted",
    model: scriptedModel([({ messages }) => JSON.stringify(messages.at(-1)?.content)]),
    middleware: [
      piiRedaction({
        patterns: [{ label: "ID", pattern: /(?<=id:)\d+/u, maxLength: 20 }],
        allowBacktracking: true,
      }),
    ],
    guardrails: [
      regex({ patterns: { twins: /(x)\1/u }, allowBacktracking: true }),
      promptInjection({ patterns: { twins: /(y)\1/u }, allowBacktracking: true }),
    ],
  });
  expect((await agent.invoke("id:4711")).output).toContain("id:[ID]");
  expect(await agent.invoke("xx")).toMatchObject({ status: "guardrail_tripped" });
  expect(await agent.invoke("yy")).toMatchObject({ status: "guardrail_tripped" });
});

import { expect, test } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import { experiment, survivesKills } from "../../src/entries/experiments.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { withRuntime } from "../assembly/with-runtime.ts";
import { answering } from "./answering-model.ts";

const model = answering(({ messages }) =>
  messages.some(({ role }) => role === "tool")
    ? { text: `It is ${JSON.stringify(messages.at(-1)?.content).includes("12") ? "noon" : "late"}.` }
    : { toolCalls: [{ name: "clock", input: {} }] },
);

function clockAgent(read: () => string): Agent {
  const clock = tool({
    name: "clock",
    description: "Reads the clock",
    inputSchema: { type: "object", properties: {} } as const,
    execute: async () => read(),
  });
  return new Agent({ name: "watch", model, tools: [clock] });
}

test("survivesKills() repeats the answer under kills, and scores the share of answers that are equal", () =>
  withRuntime(async (runtime) => {
    let reads = 0;
    const steady = clockAgent(() => "12:00");
    // Its first answer is not that of a later run.
    const moody = clockAgent(() => (reads++ === 0 ? "12:00" : "23:00"));
    const { results } = await experiment({
      name: "kills",
      agent: steady,
      cases: [{ id: "time", input: "What time is it?" }],
      scorers: [
        survivesKills({ agent: steady, model, kills: 6 }),
        survivesKills({ name: "moody", agent: moody, model, kills: 2 }),
      ],
    }).run({ runtime });
    const { survivesKills: survived, moody: lost } = results[0]?.scores ?? {};
    expect(survived).toMatchObject({ score: 1, reason: "survived 6 kills", error: null });
    expect(lost).toMatchObject({ error: null, reason: expect.stringContaining('"It is late." instead of') });
    expect(lost?.score).toBeLessThan(1);
  }));

test("survivesKills() refuses options without an agent or a model, and says what to use", () => {
  expect(() => survivesKills({ model: scriptedModel([]) } as never)).toThrow(
    "survivesKills() needs an agent and a scripted or recorded model",
  );
  expect(() => survivesKills({ agent: clockAgent(() => ""), model, kill: 3 } as never)).toThrow(
    'unknown option "kill" of survivesKills(): use "kills"',
  );
});

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { expect, test } from "vitest";
import type { Event } from "../../../src/kernel/index.ts";
import { post, worldOf, type Access } from "./gateway-world.ts";
import { answerJson } from "./mock-upstream.ts";

const usage = { input_tokens: 12, output_tokens: 30 };

function recorded(events: readonly Event[]): readonly object[] {
  return events.flatMap((event) => (event.type === "architecture_event" ? [event.data.data] : []));
}

test.each([
  ["none", []],
  ["sizes", [{ path: "/v1/messages", status: 200, requestBytes: 59, answerBytes: 64 }]],
  [
    "bodies",
    [
      {
        path: "/v1/messages",
        status: 200,
        requestBytes: 59,
        answerBytes: 64,
        request: '{"model":"m","max_tokens":9,"messages":[{"content":"the word is ****"}]}',
        answer: '{"content":["the **** again"],"usage":{"input_tokens":12,"output_tokens":30}}',
      },
    ],
  ],
] as const)("the gateway with record %s logs of a request what the option says", async (record, expected) => {
  const world = await worldOf(
    (_received, response) => answerJson(response, { content: ["the cat again"], usage }),
    { record, redact: (text) => text.replaceAll("cat", "****") },
  );
  const { events } = await world.run(async (access) => {
    const body = { model: "m", max_tokens: 9, messages: [{ content: "the word is cat" }] };
    await post(access, { path: "/v1/messages", body });
  });
  const sizes = recorded(events).map((each) => ({ ...each, requestBytes: 59, answerBytes: 64 }));
  expect(sizes).toEqual(expected);
});

test.each(["permanent", "none"] as const)(
  "bodies that the gateway records follow the retention of their run: %s",
  async (retention) => {
    const world = await worldOf(
      (_received, response) => answerJson(response, { content: ["an answer about cats"], usage }),
      { record: "bodies" },
    );
    const program = async (access: Access): Promise<void> => {
      const body = { model: "m", max_tokens: 9, messages: [{ content: "a question about cats" }] };
      await post(access, { path: "/v1/messages", body });
    };
    const { events, costUsd } = await world.run(program, undefined, retention);
    const log = JSON.stringify(events);
    const found = ["a question about cats", "an answer about cats"].filter((text) => log.includes(text));
    expect(found).toHaveLength(retention === "none" ? 0 : 2);
    expect(costUsd).toBeCloseTo(0.03, 9);
  },
);

test("the gateway does not store a body that cannot be redacted, and the log says why", async () => {
  const world = await worldOf((_received, response) => answerJson(response, { usage }), {
    record: "bodies",
    redact: () => {
      throw new Error("no rules");
    },
  });
  const { events } = await world.run(async (access) => {
    await post(access, { path: "/v1/messages", body: { model: "m" } });
  });
  expect(recorded(events)).toEqual([
    { path: "/v1/messages", status: 200, requestBytes: 13, answerBytes: 48, notStored: "no rules" },
  ]);
});

test("the clients of OpenAI and Anthropic list the models of the price list through the gateway", async () => {
  const prices = { anthropic: "anthropic", openai: "openai" } as const;
  const world = await worldOf(() => undefined, {}, { providers: prices });
  const found: string[][] = [];
  await world.run(async ({ url, token }) => {
    const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
    found.push((await openai.models.list()).data.map(({ id }) => id));
    const anthropic = new Anthropic({ baseURL: url, apiKey: token });
    found.push((await anthropic.models.list()).data.map(({ id }) => id));
  });
  expect(found[0]).toContain("gpt-4o");
  expect(found[1]?.every((id) => id.startsWith("claude"))).toBe(true);
  expect(found[1]?.length).toBeGreaterThan(3);
});

test("the model list of the gateway has only the models that the configuration allows", async () => {
  const world = await worldOf(() => undefined, { models: ["m", "n"] });
  await world.run(async ({ url, token }) => {
    const anthropic = new Anthropic({ baseURL: url, apiKey: token });
    expect((await anthropic.models.list()).data.map(({ id }) => id)).toEqual(["m", "n"]);
  });
});

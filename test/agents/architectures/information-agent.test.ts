import { describe, expect, test } from "vitest";
import { InformationAgent } from "../../../src/entries/index.ts";
import { type InformationAgentOptions } from "../../../src/assembly/agent-kinds.ts";
import { formatTopicId, type JsonValue } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { agent, settle, until } from "../../runtime/runtime-setup.ts";
import { asked, company, runAlone } from "../company.ts";

const [eu, us, digest] = ["eu", "us", "digest"].map((source) => formatTopicId({ type: "news", source }));
const topics = { sources: ["news/eu", "news/us"], topic: "news/digest" };

function newsroom(options: Partial<InformationAgentOptions>): InformationAgent {
  return new InformationAgent({ name: "newsroom", ...topics, ...options });
}

const publisher = agent("publisher", async (ctx) => {
  const { topic, items } = ctx.input as { topic: string; items: JsonValue[] };
  for (const item of items) await ctx.emit(topic as never, item);
});

/** Builds an agent that follows the digest topic and records what it receives. */
function subscriber(heard: JsonValue[]) {
  return agent("subscriber", async (ctx, inbox) => {
    if (inbox.messages.length === 0) await ctx.follow(digest as never);
    for (const { body } of inbox.messages) heard.push(body);
  });
}

describe("an InformationAgent", () => {
  test("an InformationAgent follows its sources after start(), and publishes a summary of each batch of messages", async () => {
    const { runtime, run } = await company();
    const model = scriptedModel(["Rain in the east.", "Snow in the west."]);
    const news = newsroom({ model });
    const heard: JsonValue[] = [];
    await run(subscriber(heard), null);
    expect((await news.start({ runtime })).output).toBe("follows news/eu, news/us");
    expect(model.calls).toEqual([]);
    await run(publisher, { topic: eu, items: ["It rains in Sens.", { town: "Blois", rain: true }] } as never);
    await until(() => heard.length === 1);
    await run(publisher, { topic: us, items: ["It snows in Reno."] } as never);
    await until(() => heard.length === 2);
    expect(heard).toEqual(["Rain in the east.", "Snow in the west."]);
    expect(asked(model)).toEqual([
      'Messages:\n- publisher: It rains in Sens.\n- publisher: {"town":"Blois","rain":true}',
      "Messages:\n- publisher: It snows in Reno.",
    ]);
    await runtime.close();
  });

  test("an InformationAgent keeps following its sources in another process, and a second start() has no effect", async () => {
    const { runtime, open } = await company();
    const first = newsroom({ aggregate: (items) => items.length });
    await first.start({ runtime });
    await first.start({ runtime });
    await runtime.close();
    const second = await open();
    const heard: JsonValue[] = [];
    second.register(
      newsroom({ aggregate: (items) => items.map(({ from, body }) => `${from}: ${JSON.stringify(body)}`) }),
    );
    await (await second.submit(subscriber(heard), null)).result();
    await (await second.submit(publisher, { topic: eu, items: ["a", "b"] } as never)).result();
    await until(() => heard.length > 0);
    await settle();
    expect(heard).toEqual([['publisher: "a"', 'publisher: "b"']]);
    await second.close();
  });

  test("an InformationAgent with an aggregate function needs no model and publishes nothing for null", async () => {
    const { result, notes } = await runAlone(newsroom({ aggregate: () => null }), "Something.");
    expect(result).toMatchObject({ status: "completed", output: "" });
    expect(notes).toEqual(["information.followed"]);
  });

  test("an InformationAgent summarizes its direct input with its instructions and the summarizer model", async () => {
    const main = scriptedModel([]);
    const summarizer = scriptedModel(["Fog."]);
    const news = newsroom({ model: main, models: { summarizer }, instructions: "One word." });
    const { result, notes } = await runAlone(news, "There is fog.");
    expect(result.output).toBe("Fog.");
    expect(summarizer.calls[0]?.messages[0]).toEqual({ role: "system", content: "One word." });
    expect(notes).toEqual(["information.followed", "information.published"]);
  });

  test.each<[string, Partial<InformationAgentOptions>, string]>([
    ["an empty list of sources", { sources: [] }, "invalid sources: the list is empty"],
    ["an invalid topic id", { sources: ["news"] }, "invalid topic id"],
    ["a source that is its own topic", { topic: "news/eu" }, "would receive its own messages"],
    ["a configuration without a model or function", {}, "set the option `model`"],
  ])("an InformationAgent refuses %s", (_what, options, message) => {
    expect(() => newsroom(options)).toThrow(message);
  });
});

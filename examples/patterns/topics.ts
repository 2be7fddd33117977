// An agent follows two topics, summarises what arrives and publishes the summary. A process that resumes the agent follows the same topics.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InformationAgent, openRuntime } from "reeve";
import { formatAgentId, formatTopicId, type HostedAgent, type JsonValue } from "reeve/kernel";
import { scriptedModel } from "reeve/testing";

const folder = mkdtempSync(join(tmpdir(), "reeve-information-"));
const store = `sqlite:${join(folder, "reeve.db")}` as const;
const digest = formatTopicId({ type: "news", source: "digest" });

const newsroom = (summary: string): InformationAgent =>
  new InformationAgent({
    name: "newsroom",
    sources: ["news/eu", "news/us"],
    topic: digest,
    model: scriptedModel([summary]),
  });

const publisher: HostedAgent = {
  id: formatAgentId({ name: "publisher" }),
  run: async (ctx) => {
    await ctx.emit(formatTopicId({ type: "news", source: "eu" }), "It rains in Tours.");
    await ctx.emit(formatTopicId({ type: "news", source: "us" }), { town: "Reno", snow: true });
  },
};

const heard = Promise.withResolvers<JsonValue>();
const reader: HostedAgent = {
  id: formatAgentId({ name: "reader" }),
  run: async (ctx, inbox) => {
    if (inbox.messages.length === 0) await ctx.follow(digest);
    for (const { body } of inbox.messages) heard.resolve(body);
  },
};

// The first process starts it, and ends.
const first = await openRuntime({ store });
console.log((await newsroom("").start({ runtime: first })).output);
await first.close();

// The next one hosts it.
const second = await openRuntime({ store });
second.register(newsroom("Rain in Tours, snow in Reno."));
await (await second.submit(reader, null)).result();
await (await second.submit(publisher, null)).result();
const summary = await heard.promise;
console.log(summary);
assert.equal(summary, "Rain in Tours, snow in Reno.");
await second.close();
rmSync(folder, { recursive: true, force: true });

import { Agent } from "../../src/assembly/agent.ts";
import { reviewer, type InputMessage } from "../../src/agents/index.ts";
import { tool } from "../../src/capabilities/index.ts";
import {
  formatRunId,
  nextRunId,
  type ChatMessage,
  type Event,
  type Extension,
  type JsonValue,
  type Mail,
  type RunId,
  type Runtime,
} from "../../src/kernel/index.ts";
import { sha256 } from "../../src/runtime/index.ts";
import type { ServerAddress } from "../../src/testing/served-call.ts";
import { agentOf, modelOf, sentTexts, toolOf } from "./composed-workloads.ts";
import { untilEvent } from "./until-event.ts";
import {
  ampleBudget as budget,
  lengthOf,
  modelAnswer,
  toolAnswer,
  type Said,
  type Workload,
} from "./workload.ts";

const conversation: readonly InputMessage[] = [
  { role: "user", content: `First: ${"word ".repeat(900)}` },
  { role: "assistant", content: "Yes." },
  { role: "user", content: "Now look." },
];

/** What the agent says: it calls a tool and then answers. Its summaries, children and reviews have other answers. */
function talkerSays(toolName: string, body: JsonValue): Said {
  const texts = sentTexts(body);
  if (texts.some((text) => text.includes("<conversation>"))) return { text: "In short." };
  if (texts.some((text) => text.includes("Check it."))) return { text: "It is right." };
  const hasResult = (body as unknown as readonly ChatMessage[]).some(({ role }) => role === "tool");
  return hasResult ? { text: "Done." } : { calls: [{ name: toolName, input: {} }] };
}

function worldOf(toolName: string): Workload["world"] {
  return {
    branches: 1,
    answering: ({ name, body }) =>
      name === "model" ? modelAnswer(lengthOf(body), talkerSays(toolName, body)) : toolAnswer(name, body),
  };
}

/** Returns the run that the end of another run has submitted, after it has ended. */
async function nextRun(runtime: Runtime, runId: RunId): Promise<RunId> {
  const run = await runtime.find(runId);
  const isNext = (event: Event): event is Event<"compaction_scheduled"> | Event<"run_scheduled"> =>
    event.type === "compaction_scheduled" || event.type === "run_scheduled";
  for await (const event of run?.events() ?? []) {
    if (!("seq" in event) || !isNext(event)) continue;
    await (await runtime.find(event.data.runId))?.result();
    return event.data.runId;
  }
  throw new Error(`${runId} has submitted no other run`);
}

const compactedRun = formatRunId("compacted");
const compaction = nextRunId(sha256, compactedRun, "compaction", 0);

/** An invocation whose tool requests a compaction of the session, and the compaction. */
const compacted: Workload = {
  agents: (server) => [
    new Agent({
      name: "talker",
      model: modelOf(server, "main"),
      tools: [
        tool({
          name: "look",
          description: "Looks.",
          inputSchema: { type: "object" } as const,
          execute: (_input, { ctx }) => {
            ctx.requestCompaction("Keep the names.");
            return "It did.";
          },
        }),
      ],
      compaction: { reserveTokens: 1_000, keepRecentTokens: 100 },
      budget,
    }),
  ],
  drive: async ({ runtime, agent }) => {
    await (await agentOf(agent).submit(conversation, { runtime, runId: compactedRun })).result();
    return [compactedRun, await nextRun(runtime, compactedRun)];
  },
  outputs: ["Done.", { entryId: `${compaction}/t0/1`, tokensBefore: 65, tokensAfter: 51 }],
  world: worldOf("look"),
};

const reviewedRun = formatRunId("reviewed");

/** An invocation that is followed by a review, which starts with the request of the invocation. */
const reviewed: Workload = {
  agents: (server) => [
    new Agent({
      name: "talker",
      model: modelOf(server, "main"),
      tools: [toolOf(server, "look")],
      reviewers: [reviewer({ every: 1, tools: ["look"], prompt: "Check it." })],
      budget,
    }),
  ],
  drive: async ({ runtime, agent }) => {
    await (await agentOf(agent).submit("Now look.", { runtime, runId: reviewedRun })).result();
    return [reviewedRun, await nextRun(runtime, reviewedRun)];
  },
  outputs: ["Done.", "It is right."],
  world: worldOf("look"),
};

const sharingRun = formatRunId("sharing");

/** A tool that asks a child with the same prompt. */
function checkTool() {
  return tool({
    name: "check",
    description: "Checks.",
    inputSchema: { type: "object" } as const,
    execute: async (_input, { ctx }) => {
      const spawned = await ctx.child({ prompt: "Check it.", tools: [] });
      if (spawned.kind === "refused") return "no seat";
      const { output } = await ctx.join(spawned.handle);
      return `checked: ${JSON.stringify(output)}`;
    },
  });
}

/** A run whose tool spawns a child that shares the prompt of its parent. */
const sharing: Workload = {
  agents: (server) => [
    new Agent({ name: "talker", model: modelOf(server, "main"), tools: [checkTool()], budget }),
  ],
  drive: async ({ runtime, agent }) => {
    await (await agentOf(agent).submit("Now look.", { runtime, runId: sharingRun })).result();
    return [sharingRun];
  },
  outputs: ["Done."],
  world: worldOf("check"),
};

const askedRun = formatRunId("asked");
const careful: Extension = {
  name: "careful",
  setup: (api) => {
    api.on("tool_call", async (_call, { ui }) =>
      (await ui.confirm("Look now?")) ? undefined : { block: true, reason: "refused" },
    );
  },
};

/** A run whose extension asks a person before a tool call. */
const asked: Workload = {
  runtime: { suspendAfterMs: 2 },
  agents: (server: ServerAddress) => [
    new Agent({
      name: "talker",
      model: modelOf(server, "main"),
      tools: [toolOf(server, "look")],
      extensions: [careful],
      budget,
    }),
  ],
  drive: async ({ runtime, agent }) => {
    await (await agentOf(agent).submit("Now look.", { runtime, runId: askedRun })).result();
    return [askedRun];
  },
  outputs: ["Done."],
  world: {
    ...worldOf("look"),
    visitor: async ({ store, signal }) => {
      const request = await untilEvent(store, askedRun, ({ type }) => type === "approval_request", signal);
      if (request.type !== "approval_request") throw new Error("the event is not an approval_request");
      await store.mailbox.put(approvalMail(request.data.approvalId));
    },
  },
};

function approvalMail(approvalId: string): Mail {
  const decision = { decision: "approved" } as const;
  return { id: "yes", runId: askedRun, from: "ann", at: 1, body: { type: "approval", approvalId, decision } };
}

/** Workloads of what surrounds an invocation: compactions, reviews, children and extensions. */
export const lifeWorkloads: Readonly<Record<string, Workload>> = { compacted, reviewed, sharing, asked };

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, OrchestratorAgent, Priority, tool, type SubAgentConfig } from "../../src/entries/index.ts";
import { fileTools } from "../../src/capabilities/tools/index.ts";
import { userMessage, type HostedAgent, type PriceTable } from "../../src/kernel/index.ts";
import type { Stage } from "./stage.ts";

/** 20 dollars per million input tokens, 100 per million output tokens: short texts with visible prices. */
export const prices: PriceTable = { find: () => ({ inputUsd: 2e-5, outputUsd: 1e-4 }) };

export const releaseTask = "Audit release 0.9, fix what blocks it, publish";

const noted = tool({
  name: "note",
  description: "Notes a finding",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: async ({ text }) => `noted: ${text}`,
});

const publish = tool({
  name: "publish",
  description: "Publishes the package",
  inputSchema: {
    type: "object",
    properties: { command: { type: "string" } },
    required: ["command"],
  },
  needsApproval: true,
  execute: async ({ command }) => `ran ${command}`,
});

/** Markup, a terminal code, and characters that turn the direction of a text or are not visible. */
const hostile = "<b>bold</b> \u001b[31mred\u202e txt\u200b";

/** Returns a line of a megabyte. */
const recite = tool({
  name: "recite",
  description: `Recites the archive ${hostile}`,
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  execute: async ({ text }) => `${text} ${"x".repeat(1_000_000)}`,
});

const askHuman = tool({
  name: "ask",
  description: "Asks a person",
  inputSchema: { type: "object", properties: { question: { type: "string" } }, required: ["question"] },
  suspends: true,
  execute: async ({ question }, { ctx, callId }) => {
    const input = { question, options: ["In full, $84.00", "Second item, $31.50"] };
    const answer = await ctx.approval({
      toolName: "ask",
      callId,
      input,
      reason: "the customer wants a refund",
    });
    return answer.decision === "approved" ? JSON.stringify(answer.input) : answer.decision;
  },
});

const call = (name: string, input: object) => ({ tool: name, input: { ...input } });
/** A hand-off without a timeout, because it waits as long as a gate is closed, also on a busy machine. */
const staff = (config: SubAgentConfig): SubAgentConfig => ({ ...config, askTimeoutMs: null });
const hand = (name: string, task: string) => call(`handoff_${name}`, { task });

/** A company of 13 agents in 9 seats: hiring, preemption, an approval, an edit. `root` is a folder of its own. */
export function company(stage: Stage, root: string): HostedAgent {
  writeFileSync(
    join(root, "package.json"),
    `{\n  "name": "reeve",\n  "version": "0.9.0-rc.3",\n  "type": "module",\n  "publishConfig": { "tag": "next" }\n}\n`,
  );
  const files = fileTools({ root });
  const agent = (name: string, cap: number, lines: Parameters<Stage["actor"]>[0], modelId = "sonnet-5") =>
    new Agent({ name, model: stage.actor(lines, modelId), tools: [noted], budget: { maxCostUsd: cap } });
  const packages = agent(
    "packages",
    0.35,
    [{ calls: [call("note", { text: "6 packages" })] }, { text: "It stands on 6 packages." }],
    "haiku-5",
  );
  const licence = agent("licence", 0.2, [{ text: "MIT, no conflicts." }], "haiku-5");
  const security = agent("security-advisory-correlator", 0.28, [
    { text: "I look the advisories up.", calls: [call("note", { text: "osv.dev" })], tokens: 300 },
    {
      text: "3 of 9 are reachable from our code, so I rank them by reach.",
      hold: "security",
      tokens: 300,
    },
  ]);
  const research = new OrchestratorAgent({
    name: "research",
    model: stage.actor([
      {
        text: "Three questions.",
        calls: [
          hand("packages", "What does it stand on?"),
          hand("licence", "May we use it?"),
          hand("security-advisory-correlator", "Which advisories reach us?"),
        ],
      },
      { text: "Nothing blocks the release but one advisory.", hold: "research" },
    ]),
    tools: [noted],
    subAgents: [
      staff({ agent: packages }),
      staff({ agent: licence, priority: Priority.HIGH }),
      staff({ agent: security, priority: Priority.LOW }),
    ],
    budget: { maxCostUsd: 0.8 },
  });
  const flaky = agent("fix-flaky-tests", 0.25, [
    { text: "The clock is real.", calls: [call("note", { text: "lease.test.ts" })] },
    { text: "I prove the fix with 20 runs, and 17 have passed so far.", hold: "flaky" },
  ]);
  const size = agent(
    "size",
    0.25,
    [{ calls: [call("note", { text: "du -sh dist" })] }, { text: "1.1 MB." }],
    "haiku-5",
  );
  const build = new OrchestratorAgent({
    name: "build",
    model: stage.actor([
      {
        text: "I measure first.",
        calls: [hand("size", "How large is it?"), hand("fix-flaky-tests", "Two tests are flaky.")],
      },
      { text: "The build is green.", hold: "build" },
    ]),
    subAgents: [
      staff({ agent: size, priority: Priority.LOW, onFull: "wait" }),
      staff({ agent: flaky, priority: Priority.HIGH }),
    ],
    budget: { maxCostUsd: 0.6 },
  });
  const api = agent("reviewer-api", 0.4, [
    {
      text: "Two breaking changes are undocumented, and I propose wording for both.",
      hold: "api",
      tokens: 300,
    },
  ]);
  const docs = agent("reviewer-docs", 0.2, [{ text: "The guides are complete." }], "haiku-5");
  const review = new OrchestratorAgent({
    name: "review",
    model: stage.actor([
      {
        text: "Two readers.",
        calls: [hand("reviewer-api", "Read the surface."), hand("reviewer-docs", "Read the guides.")],
      },
      { text: "Approved with two notes." },
    ]),
    // Nine seats are too few for all at once: these wait until one frees.
    subAgents: [staff({ agent: api, onFull: "wait" }), staff({ agent: docs, onFull: "wait" })],
    budget: { maxCostUsd: 0.5 },
  });
  const changelog = agent("changelog", 0.12, [{ text: "Nine entries, two of them breaking." }], "haiku-5");
  const release = new OrchestratorAgent({
    name: "release",
    model: stage.actor([
      {
        text: "The version goes to 0.9.0 and the tag from next to latest.",
        calls: [call("edit", { path: "package.json", oldText: '"0.9.0-rc.3"', newText: '"0.9.0"' })],
      },
      { calls: [hand("changelog", "List what changed since 0.8.")] },
      {
        text: "412 files, no source maps, no test fixtures. All that blocked is closed except the flaky lease test.",
        calls: [call("publish", { command: "npm publish --tag latest --access public" })],
      },
      { text: "Published." },
    ]),
    tools: [...files, publish],
    subAgents: [staff({ agent: changelog, onFull: "wait" })],
    budget: { maxCostUsd: 0.4 },
  });
  return new OrchestratorAgent({
    name: "lead",
    model: stage.actor([
      {
        text: "Four people, one release.",
        calls: [
          hand("research", "Does anything block 0.9?"),
          hand("build", "Is the build green?"),
          hand("review", "Is the surface sound?"),
          hand("release", "Publish if it is clean."),
        ],
      },
      { text: "Reeve 0.9.0 is published." },
    ]),
    tools: [noted],
    subAgents: [
      ...[research, build, review].map((manager) => staff({ agent: manager })),
      staff({ agent: release, priority: Priority.HIGH }),
    ],
    spawnBudget: { maxAgents: 9, allowPreempt: true },
    budget: { maxCostUsd: 3 },
  });
}

/** Takes an object, for which the page has a form. */
export function booker(stage: Stage): HostedAgent {
  return new Agent({
    name: "booker",
    description: "Books a room",
    model: stage.actor([{ text: "Booked." }]),
    input: {
      type: "object",
      properties: {
        city: { type: "string", minLength: 2, title: "City" },
        nights: { type: "integer", minimum: 1, maximum: 9, title: "Nights" },
        room: { enum: ["single", "double"], title: "Room" },
      },
      required: ["city", "nights"],
    },
  });
}

/** Agents with one task each. */
export function soloists(stage: Stage): readonly HostedAgent[] {
  const solo = (name: string, lines: Parameters<Stage["actor"]>[0], more: object = {}) =>
    new Agent({ name, model: stage.actor(lines), ...more });
  return [
    solo(
      "chatter",
      [
        { text: "Almost: one test is flaky.", hold: "chatter" },
        { text: "I am at it, and it takes a while.", hold: "never" },
      ],
      { budget: { maxCostUsd: 0.5 } },
    ),
    solo("writer", [{ text: "Here is the summary of the incident. The cause was one missing index." }]),
    solo("desk", [
      { text: "Not yet: two tests are flaky, and one advisory is open.", hold: "desk" },
      { text: "For you. release asks whether it may publish." },
    ]),
    solo(
      "publisher",
      [
        { text: "I publish now.", calls: [call("publish", { command: "npm publish --tag latest" })] },
        { text: "Published." },
      ],
      { tools: [publish] },
    ),
    solo(
      "republisher",
      [
        { calls: [call("publish", { command: "npm publish --tag latest" })] },
        { calls: [call("publish", { command: "npm publish --tag next" })] },
        { text: "Published." },
      ],
      { tools: [publish] },
    ),
    solo(
      "triage",
      [
        { calls: [call("ask", { question: "Refund order 8841 in full, or the second item only?" })] },
        { text: "The refund is on its way." },
      ],
      { tools: [askHuman] },
    ),
    solo(
      "sneak",
      [{ calls: [call("publish", { command: reversed, target: "prod\u200b" })] }, { text: "Published." }],
      {
        tools: [publish],
      },
    ),
    solo("longhand", [{ calls: [call("publish", { command: longCommand })] }, { text: "Published." }], {
      tools: [publish],
    }),
    bureau(stage),
    booker(stage),
    new Agent({
      name: "archivist",
      model: Object.assign(
        stage.actor([{ text: "I note it.", calls: [call("recite", { text: hostile })] }, { text: "Noted." }]),
        { contextWindow: 50_000 },
      ),
      instructions: `Keep the archive. ${hostile}`,
      tools: [recite],
      ephemeral: [{ name: "clock", messages: async () => [userMessage("It is late.")] }],
    }),
    solo("keyless", [{ fails: "The key of stage is missing. <b>Set STAGE_KEY.</b>" }]),
    solo("nightly", [{ tokens: 300, calls: [call("note", { text: "updater" })] }, { text: "Updated." }], {
      tools: [noted],
      budget: { maxCostUsd: 0.05 },
    }),
    solo("counted", [{ calls: [call("note", { text: "first" })] }, { text: "Counted." }], {
      tools: [noted],
      budget: { maxTurns: 1 },
    }),
  ];
}

/** A command that does not fit on a screen. Its last line is the one that matters. */
const longCommand = `${Array.from({ length: 200 }, (_, line) => `echo step ${line}`).join("\n")}\nnpm publish`;

/** A command that a browser shows in another order, with a hidden part. */
export const reversed = "rm -rf \u202etxt.ssentoh/\u2066 # \u{e0068}\u{e0069}\u200b";

/** A company that stops at its budget after one of its agents has answered. */
function bureau(stage: Stage): HostedAgent {
  const updater = new Agent({
    name: "updater-web",
    model: stage.actor([{ text: "Nine updates are open." }]),
    budget: { maxCostUsd: 0.06 },
  });
  return new OrchestratorAgent({
    name: "bureau",
    model: stage.actor([
      { text: "One report.", calls: [hand("updater-web", "What is outdated?")] },
      { text: "Everything is current.", tokens: 400 },
    ]),
    subAgents: [updater],
    budget: { maxCostUsd: 0.07 },
  });
}

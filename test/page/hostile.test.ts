import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { Agent, OrchestratorAgent, tool } from "../../src/entries/index.ts";
import { formatAgentId, type HostedAgent, type JsonValue, type RunId } from "../../src/kernel/index.ts";
import { openProgram } from "./gateway-program.ts";
import { ended, submitRun, waitsForPerson } from "./page-runs.ts";
import { PageServer } from "./page-server.ts";
import { sharedPage } from "./page-tests.ts";
import { Stage } from "./stage.ts";
import { hostile, shortHostile, unsafe } from "./unsafe.ts";

const stage = new Stage();
/** A tool whose result is a long line. */
const echo = tool({
  name: "echo",
  description: shortHostile,
  inputSchema: { type: "object", properties: { path: { type: "string" } } },
  execute: async () => hostile,
});
const rascal = new Agent({
  name: "rascal",
  description: shortHostile,
  model: stage.actor([
    { text: shortHostile, calls: [{ tool: "echo", input: { path: `a/${shortHostile}` } }] },
    { text: shortHostile },
  ]),
  tools: [echo],
  instructions: shortHostile,
});
const wipe = tool({
  name: "wipe",
  description: "Wipes.",
  inputSchema: {
    type: "object",
    properties: { [shortHostile]: { type: "string", title: shortHostile, description: hostile } },
  },
  needsApproval: true,
  execute: async () => "wiped",
});
const wiped = { path: `a/${hostile}`, [shortHostile]: shortHostile };
/** An agent that asks a person about a call with a long hostile argument, and about a call with a hostile name. */
const bandit = new Agent({
  name: "bandit",
  model: stage.actor([{ text: shortHostile, calls: [{ tool: "wipe", input: wiped }] }]),
  tools: [wipe],
});

/** An agent that delegates a hostile task to its sub-agent. */
const chief = new OrchestratorAgent({
  name: "chief",
  model: stage.actor([{ calls: [{ tool: "handoff_rascal", input: { task: hostile } }] }, { text: "Told." }]),
  subAgents: [rascal],
});
/** An agent whose program asks whether it may make a call outside its folder. */
const outsider: HostedAgent = {
  id: formatAgentId({ name: "outsider" }),
  run: (ctx) =>
    ctx.attempt(
      "work",
      async (attempt) => {
        const call = { callId: "c1", toolName: "write", input: { path: hostileName } };
        const location = { path: hostileName, isOutside: true };
        const diff = `--- a\n+++ b\n@@ -1 +1 @@\n-one\n+${hostile}\n`;
        const view = {
          title: shortHostile,
          kind: shortHostile,
          locations: [location],
          diffs: [{ ...location, diff }],
          options: [
            { kind: "allow_once", name: shortHostile },
            { kind: shortHostile, name: shortHostile },
          ],
        };
        attempt.tell({ type: "call_start", ...call, view });
        return (await attempt.permit({ ...call, view })).decision;
      },
      { program: { name: "scribe", source: "acp" } },
    ),
};
const hostileName = "src/<img src=x onerror=alert(1)>\u202Egnp.ts";
/**
 * A tool that asks in the same way as the tool that merges worktrees. Each name from git and a line of the diff are
 * hostile.
 */
const merge = tool({
  name: "merge",
  description: "Merges.",
  inputSchema: { type: "object" },
  suspends: true,
  execute: async (_input, { ctx, callId }) => {
    const paths = { count: 1, paths: [hostileName] };
    const question = {
      message: `Merge the work of t1 into ${hostileName}: 1 changed file`,
      merge: {
        path: `/srv/${hostileName}`,
        branch: hostileName,
        head: "a".repeat(40),
        sources: [{ taskId: "t1", branch: `reeve/${hostileName}`, commit: "b".repeat(40) }],
        commit: "c".repeat(40),
        changed: paths,
        conflicts: { count: 0, paths: [] },
      },
      diff: `diff --git a/${hostileName} b/${hostileName}\n--- a/${hostileName}\n+++ b/${hostileName}\n@@ -1 +1 @@\n-one\n+${hostile}\n`,
    } satisfies JsonValue;
    const answer = await ctx.approval({
      kind: "merge",
      toolName: "merge",
      callId,
      input: question,
      reason: question.message,
    });
    return answer.decision;
  },
});
const merger = new Agent({
  name: "merger",
  model: stage.actor([{ calls: [{ tool: "merge", input: {} }] }, { text: "Merged." }]),
  tools: [merge],
});

const server = new PageServer(() => [rascal, bandit, chief, merger, outsider]);
const { open } = sharedPage(server);

/** Makes a message of a run that could not be delivered. */
async function deliverHostile(runId: string): Promise<void> {
  const { inbox } = server.store;
  const sender = { runId: runId as RunId, userId: null, tenantId: null, metadata: {} };
  const letter = {
    id: "letter",
    from: null,
    to: "merger" as never,
    body: hostile,
    sentAt: Date.now(),
    sender,
  };
  await inbox.deliver(letter);
  for (let time = 0; time < inbox.settings.maxDeliveries; time++) await inbox.nack(letter.to, [letter.id]);
}

const views: readonly (readonly [path: string, ready: string])[] = [
  ["/runs", ".table.runs .title"],
  ["/find?text=evil", ".found-line"],
  ["/sessions", ".session-line"],
  ["/sessions?id=SESSION", ".thread .prose"],
  ["/agents", ".chip"],
  ["/schedules", ".table.schedules"],
  ["/usage?by=agent", ".table.usage"],
  ["/compare?a=RUN&b=FORK", ".facts"],
  ["/again?run=FORK", ".variant-answer"],
  ["/runs/RUN/chart", ".card"],
  ["/runs/RUN/chart?zoom=rows", ".org-rows tr"],
  ["/runs/FORK/timeline", ".step-lane"],
  ["/runs/FORK/conversation", ".shares"],
  ["/runs/FORK/saw", ".context-parts"],
  ["/runs/RUN/money", "tr.total"],
  ["/runs/RUN/events", ".event-row"],
  ["/inbox?run=ASKING", ".inbox-detail .approval"],
  ["/runs/ASKING/conversation", ".approval"],
  ["/runs/ASKING/messages", ".message-list li"],
  ["/runs/CHIEF/messages", ".message-list li"],
  ["/runs/CHIEF/conversation", ".hired"],
  ["/inbox?run=MERGING", ".inbox-detail .approval .diff"],
  ["/runs/MERGING/conversation", ".approval .diff"],
  ["/inbox?run=FOREIGN", ".inbox-detail .approval .command"],
  ["/runs/FOREIGN/conversation", ".approval .command"],
  ["/inbox?kind=letter", ".inbox-detail .fault"],
];

/** Returns the unsafe content in the fields and in the JSON of an edited call. */
async function hostileEdit(page: Page): Promise<readonly (readonly [string, readonly string[]])[]> {
  await page.keyboard.press("e");
  const fields = page.locator(".call-edit textarea");
  await expect.poll(() => fields.count()).toBe(2);
  const inFields = await page.evaluate<readonly string[]>(unsafe);
  const texts = await fields.evaluateAll((all) =>
    all.map((field) => (field as { value?: string }).value ?? ""),
  );
  expect(new Set(texts.map((text) => JSON.parse(text) as unknown))).toEqual(new Set(Object.values(wiped)));
  expect(texts.join("\n")).not.toMatch(/[\p{Cf}]|(?!\n)\p{Cc}/u);
  await page.getByRole("button", { name: "Edit as JSON" }).click();
  await page.getByLabel("Arguments, as JSON").waitFor();
  return [
    ["fields", inFields],
    ["json", await page.evaluate<readonly string[]>(unsafe)],
  ];
}

test("hostile texts stay text on one line in the page's lists, in every view of a run and in a fork of the run", async () => {
  const runId = await submitRun(server, "rascal", shortHostile);
  await ended(server, runId);
  const origin = await server.runtime.find(runId);
  const fork = await origin?.fork({ at: 5, input: shortHostile });
  await fork?.result();
  const schedule = { name: "night", agent: "rascal", cron: "0 0 1 1 *", input: shortHostile };
  const headers = { "content-type": "application/json" };
  const made = await fetch(`${server.url}/api/schedules`, {
    method: "POST",
    headers,
    body: JSON.stringify(schedule),
  });
  expect(made.ok).toBe(true);
  const asking = await submitRun(server, "bandit", shortHostile);
  await waitsForPerson(server, asking);
  await (await server.runtime.find(asking))?.steer(hostile);
  const handing = await submitRun(server, "chief", shortHostile);
  await ended(server, handing);
  const merging = await submitRun(server, "merger", shortHostile);
  await waitsForPerson(server, merging);
  await deliverHostile(merging);
  const foreign = await submitRun(server, "outsider", shortHostile);
  await waitsForPerson(server, foreign);
  const { runs } = await server.runtime.list({ agentId: "rascal" });
  const ids = {
    RUN: runId,
    FORK: fork?.runId ?? "",
    ASKING: asking,
    CHIEF: handing,
    MERGING: merging,
    FOREIGN: foreign,
    SESSION: runs.find((run) => run.runId === runId)?.sessionId ?? "",
  };
  const found: (readonly [path: string, problems: readonly string[]])[] = [];
  for (const [path, ready] of views) {
    const page = await open(
      path.replaceAll(
        /RUN|FORK|SESSION|ASKING|CHIEF|MERGING|FOREIGN/gu,
        (name) => ids[name as keyof typeof ids],
      ),
    );
    const shown = page.locator(ready);
    await shown.first().waitFor();
    found.push([path, await page.evaluate<readonly string[]>(unsafe)]);
    if (path.startsWith("/runs/FOREIGN")) {
      await page.getByText("outside its folder").first().waitFor();
      // The call is long, and must be read to its end.
      await page.evaluate(`document.querySelector(".approval .asked").scrollTo(0, 1e6)`);
      await page.getByRole("button", { name: "Allow once" }).click();
    }
    if (path === "/inbox?run=ASKING") found.push(...(await hostileEdit(page)));
    if (ready !== ".step-lane") continue;
    for (const step of await shown.all()) {
      await step.click();
      await page.getByRole("complementary", { name: "About the step" }).waitFor();
      found.push([path, await page.evaluate<readonly string[]>(unsafe)]);
    }
  }
  expect(found.filter(([, problems]) => problems.length > 0)).toEqual([]);
  expect(await (await server.runtime.find(foreign))?.result()).toMatchObject({ output: "approved" });
});

test("hostile users, models and tools stay text in the page's list of the gateway and in a gateway run", async () => {
  const program = await openProgram(server, "hostile", { userId: shortHostile });
  onTestFinished(program.close);
  expect(await program.ask({ model: shortHostile })).toBe(200);
  expect(await program.ask({ tools: [{ type: hostile }] })).toBe(403);
  const { runId } = program.run;
  const found: (readonly [path: string, problems: readonly string[]])[] = [];
  for (const [path, ready] of [
    ["/gateway", ".figure-cards tbody tr"],
    [`/runs/${runId}`, ".requests tbody tr"],
    [`/runs/${runId}/events`, ".event-row"],
    ["/usage?by=user", ".table.usage"],
  ] as const) {
    const page = await open(path);
    await page.locator(ready).first().waitFor();
    found.push([path, await page.evaluate<readonly string[]>(unsafe)]);
  }
  expect(found.filter(([, problems]) => problems.length > 0)).toEqual([]);
  await program.run.cancel("the test ends");
});

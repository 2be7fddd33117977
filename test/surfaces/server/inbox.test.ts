import { expect, it, onTestFinished } from "vitest";
import { Agent } from "../../../src/assembly/agent.ts";
import { tool } from "../../../src/capabilities/index.ts";
import { formatAgentId } from "../../../src/kernel/index.ts";
import { memoryStore, sha256 } from "../../../src/runtime/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { until } from "../../runtime/runtime-setup.ts";
import { startServer, type TestServer } from "./test-server.ts";

interface Inbox {
  readonly questions: Part<{
    readonly runId: string;
    readonly approvalId: string;
    readonly requestedAt: number;
  }>;
  readonly runs: Part<{ readonly runId: string; readonly endedAt: number }>;
  readonly letters: Part<{ readonly message: { readonly id: string; readonly sentAt: number } }>;
  readonly away: number;
  readonly waiting: number;
  readonly asking: readonly string[];
  readonly setAside: readonly string[];
}

interface Part<Item> {
  readonly items: readonly Item[];
  readonly isMore: boolean;
}

const asking = tool({
  name: "ask",
  description: "Asks a person.",
  inputSchema: { type: "object" },
  needsApproval: true,
  execute: () => "Asked.",
});

/** A server with two open questions, five runs that stopped at their money, the newest last, and a dead letter. */
async function serve() {
  const asks = { toolCalls: [{ name: "ask", input: {} }] };
  const server = await startServer(
    [
      new Agent({ name: "poor", model: scriptedModel([]), budget: { maxCostUsd: 0.000_001 } }),
      new Agent({ name: "asker", model: scriptedModel([asks, asks]), tools: [asking] }),
    ],
    {
      store: memoryStore({ hash: sha256 }),
      runtimeOptions: { prices: { find: () => ({ inputUsd: 1e-3, outputUsd: 1e-3 }) } },
    },
  );
  onTestFinished(() => server.close());
  const start = async (name: string): Promise<string> => {
    const { json } = await server.call("POST", "/api/runs", { body: { agent: name, input: "Go." } });
    return (json["run"] as { readonly runId: string }).runId;
  };
  const stopped: string[] = [];
  for (let time = 0; time < 5; time++) {
    const runId = await start("poor");
    await (await server.runtime.find(runId))?.result();
    stopped.push(runId);
  }
  const asked = [await start("asker"), await start("asker")];
  await until(async () => (await read(server)).waiting === 2);
  const { inbox } = server.store;
  const to = formatAgentId({ name: "archive" });
  await inbox.deliver({ id: "letter-1", from: null, to, body: "Read this.", sentAt: 7 });
  for (let time = 0; time < inbox.settings.maxDeliveries; time++) await inbox.nack(to, ["letter-1"]);
  return { server, stopped, asked };
}

async function read(server: TestServer, query = "", token = server.admin): Promise<Inbox> {
  const { status, json } = await server.call("GET", `/api/inbox${query}`, { token });
  expect(status).toBe(200);
  return json as unknown as Inbox;
}

function idsOf(part: Part<{ readonly runId: string }>): readonly string[] {
  return part.items.map(({ runId }) => runId);
}

it("the server's inbox fills its pages with items that the caller has not hidden, and lists hidden items separately", async () => {
  const { server, stopped, asked } = await serve();
  const whole = await read(server);
  expect(idsOf(whole.runs)).toEqual(stopped.toReversed());
  expect([whole.waiting, whole.asking.toSorted(), whole.away]).toEqual([2, asked.toSorted(), 0]);
  const [newest, second] = whole.runs.items;
  const items = [newest, second].map((run) => ({ id: run?.runId, change: String(run?.endedAt) }));
  const question = whole.questions.items.find(({ runId }) => runId === asked[0]);
  items.push({
    id: `${question?.runId}:${question?.approvalId}`,
    change: String(question?.requestedAt),
  });
  expect((await server.call("POST", "/api/inbox/hidden", { body: { items } })).status).toBe(200);

  const open = await read(server, "?limit=2");
  expect([idsOf(open.runs), open.runs.isMore]).toEqual([stopped.slice(1, 3).toReversed(), true]);
  expect([idsOf(open.questions), open.questions.isMore]).toEqual([[asked[1]], false]);
  expect(open.letters.items).toMatchObject([{ message: { id: "letter-1" } }]);
  expect([open.away, open.waiting]).toEqual([3, 1]);
  expect([open.asking, open.setAside]).toEqual([[asked[1]], [asked[0]]]);
  const away = await read(server, "?view=away&limit=100");
  expect([idsOf(away.runs), idsOf(away.questions), away.letters.items]).toEqual([
    stopped.slice(3).toReversed(),
    [asked[0]],
    [],
  ]);
  // Another person has taken nothing off.
  expect(
    (await read(server, "", (await server.tokens.create({ name: "bob", scope: "admin" })).token)).away,
  ).toBe(0);

  // A run that stopped again is on the list again.
  const changed = { id: newest?.runId, change: "5" };
  await server.call("POST", "/api/inbox/hidden", { body: { items: [changed] } });
  expect(idsOf((await read(server)).runs)).toContain(newest?.runId);
  await server.call("POST", "/api/inbox/restore", { body: { ids: items.map(({ id }) => id) } });
  expect(await read(server)).toMatchObject({ away: 0, waiting: 2 });
});

it("the server's inbox can be limited to one kind, one agent and one run", async () => {
  const { server, stopped, asked } = await serve();
  const poor = await read(server, "?agent=poor");
  expect([idsOf(poor.runs).length, poor.questions.items, poor.letters.items]).toEqual([5, [], []]);
  // What waits in all does not depend on the filter.
  expect(poor.waiting).toBe(2);
  const questions = await read(server, "?kind=question");
  expect([questions.questions.items.length, questions.runs.items, questions.letters.items]).toEqual([
    2,
    [],
    [],
  ]);
  const one = await read(server, `?runId=${asked[0]}`);
  expect([idsOf(one.questions), one.runs.items, one.letters.items]).toEqual([[asked[0]], [], []]);
  expect(idsOf((await read(server, `?runId=${stopped[0]}`)).runs)).toEqual([stopped[0]]);
  expect((await read(server, "?agent=archive")).letters.items).toHaveLength(1);
  const acme = await read(server, "", await server.tokenOf("acme", "read"));
  expect([acme.waiting, acme.runs.items]).toEqual([0, []]);
});

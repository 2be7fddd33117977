import { expect, test } from "vitest";
import { Agent, tool } from "../../src/entries/index.ts";
import {
  contextMessages,
  findUnpaired,
  formatSessionId,
  messageText,
  type ModelRequest,
  type SessionEntry,
  type Store,
} from "../../src/kernel/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { runWorkload, type Workload, type WorkloadResult } from "../runtime/simulated-crash.ts";
import { deathsAt } from "../effort.ts";

const sessionId = formatSessionId("talk");
const long = "word ".repeat(900);
const isSummary = ({ messages }: ModelRequest): boolean =>
  messages.some((message) => messageText(message).includes("<conversation>"));

/** Why the session is compacted: it does not fit the window of the model, or the tool requests it. */
type Cause = "window" | "request";

const look = (cause: Cause) =>
  tool({
    name: "look",
    description: "Looks",
    inputSchema: { type: "object", properties: {} },
    execute: (_input, { ctx }) => {
      if (cause === "request") ctx.requestCompaction("Keep the names.");
      return "seen";
    },
  });

/** An invocation with a tool call, followed by a compaction. `world` records the calls. */
function compactedTalk(world: string[], cause: Cause): Workload {
  const contextWindow = cause === "window" ? 2_000 : 100_000;
  const answer = (request: ModelRequest) => {
    const isSummaryCall = isSummary(request);
    world.push(isSummaryCall ? "summary" : "turn");
    if (isSummaryCall) return "In short.";
    return request.messages.at(-1)?.role === "tool" ? "Done." : { toolCalls: [{ name: "look", input: {} }] };
  };
  const agent = (): Agent =>
    new Agent({
      name: "talker",
      model: Object.assign(scriptedModel(Array.from({ length: 20 }, () => answer)), { contextWindow }),
      tools: [look(cause)],
      compaction: { reserveTokens: 1_000, keepRecentTokens: 100 },
    });
  const input = [
    { role: "user", content: `First: ${long}` },
    { role: "assistant", content: "Yes." },
    { role: "user", content: "Now look." },
  ];
  return {
    agents: () => [agent()],
    input,
    submit: { userId: "ann", retention: "permanent" },
    options: { unknownPrice: "ignore" },
    isComplete: (runs) => runs.length === 2,
  };
}

async function pathOf({ journal, sessions }: Store): Promise<readonly SessionEntry[]> {
  const { runs } = await journal.list();
  const path = await sessions.readPath(runs[0]?.sessionId ?? sessionId);
  return path?.entries ?? [];
}

async function summaryRecords({ journal }: Store): Promise<number> {
  const { runs } = await journal.list({ kind: "compaction" });
  let count = 0;
  for (const { runId } of runs)
    for await (const { steps = [] } of journal.read(runId))
      count += steps.filter(({ kind }) => kind === "llm").length;
  return count;
}

async function shape({ store, status, output }: WorkloadResult): Promise<unknown> {
  const { runs } = await store.journal.list();
  const path = await pathOf(store);
  return {
    status,
    output,
    runs: runs.map(({ kind, status: end, userId }) => [kind, end, userId]),
    entries: path.map(({ type }) => type),
    summaries: await summaryRecords(store),
    unpaired: findUnpaired(contextMessages(path)),
  };
}

test.each<Cause>(["window", "request"])(
  "J1, S1: a compaction because of %s leaves the same session wherever its worker dies, and records one summary",
  async (cause) => {
    const calmWorld: string[] = [];
    const calm = await runWorkload(compactedTalk(calmWorld, cause));
    const expected = await shape(calm);
    expect(expected).toEqual({
      status: "completed",
      output: "Done.",
      runs: [
        ["compaction", "completed", "ann"],
        ["invocation", "completed", "ann"],
      ],
      entries: ["message", "message", "message", "message", "message", "message", "compaction"],
      summaries: 1,
      unpaired: undefined,
    });
    expect(calmWorld).toEqual(["turn", "turn", "summary"]);
    for (let at = 1; at <= calm.writes; at++)
      for (const when of deathsAt(at)) {
        const world: string[] = [];
        const crashed = await runWorkload(compactedTalk(world, cause), {
          at,
          when,
          countCalls: () => world.length,
        });
        expect({ at, when, shape: await shape(crashed) }).toEqual({ at, when, shape: expected });
        // J6: at most the call in flight repeats.
        expect(world.length).toBeLessThanOrEqual(calmWorld.length + 1);
      }
  },
);

import { describe, expect, test } from "vitest";
import { visibleLine } from "../../src/kernel/index.ts";
import { AgentTree } from "../../src/surfaces/cli/chat/front/agent-tree.ts";
import { piMeasure } from "../../src/surfaces/cli/chat/screen/pi-board.ts";
import { themeOf } from "../../src/surfaces/cli/chat/screen/theme.ts";
import { questionLines, type BoardPlace } from "../../src/surfaces/cli/watch/board-lines.ts";
import { runBoardLines, type RunPanel } from "../../src/surfaces/cli/watch/run-board.ts";
import type { Run, RunState } from "../../src/surfaces/cli/watch/run-feed.ts";
import { fittingRuns, storeBoardLines } from "../../src/surfaces/cli/watch/store-board.ts";
import { amountOf } from "../../src/surfaces/cli/chat/front/top-up-amount.ts";
import { orderProblem } from "../../src/surfaces/cli/watch/watch-orders.ts";
import { RequestError } from "../../src/surfaces/client/route-client.ts";
import { company } from "./company-run.ts";

const place: BoardPlace = {
  columns: 80,
  rows: 24,
  theme: themeOf("none"),
  measure: piMeasure,
  now: 61_000,
};
const keys = [
  ["a", "answer"],
  ["?", "help"],
  ["q", "leave"],
] as const;
const run = {
  runId: "run_1",
  agentId: "lead",
  title: "Do it",
  status: "waiting",
  waitsFor: ["person"],
  endedAt: null,
  createdAt: 1_000,
  costUsd: 0.0105,
  userId: "mara",
} as unknown as Run;

function stateOf(scout?: string): RunState {
  const view = company(scout);
  return { run, view, questions: [...view.asked], lack: undefined, heldBy: () => 0.004 };
}

function boardOf(panel: RunPanel, size: Partial<BoardPlace> = {}, scout?: string): readonly string[] {
  const foot = { lostAt: undefined, keys };
  const board = { feed: stateOf(scout), chart: new AgentTree(), panel, marked: undefined, foot };
  return runBoardLines(board, { ...place, ...size });
}

describe("the watch board of a run", () => {
  test("the watch board of a run shows its status, what is spent, reserved and left, its agents and its questions", () => {
    const lines = boardOf("inbox");
    expect(lines).toHaveLength(24);
    expect(lines[0]).toMatch(/^Do it run_1 +Waits for you · 1 m$/u);
    expect(lines[1]).toBe("$0.0105 spent · $0.0040 reserved · budget $0.5000, $0.4855 left · 3,300 tokens");
    expect(lines[2]).toMatch(/^─ 4 agents · 0 at work · 3 waiting · seats 2 of 2 ─+$/u);
    expect(lines.at(-3)).toMatch(/^─ Inbox: 1 waits for you ─+$/u);
    expect(lines.at(-2)).toMatch(/^ {2}\? scout: wants to call write: ma\\u202ede\.txt +59 s$/u);
    const idle = { ...stateOf(), questions: [] };
    const foot = { lostAt: undefined, keys };
    const quiet = { feed: idle, chart: new AgentTree(), panel: "inbox", marked: undefined, foot } as const;
    expect(runBoardLines(quiet, place).at(-2)).toMatch(/^─ Inbox: nothing waits for you ─+$/u);
    expect(lines.at(-1)).toBe("a answer  ? help  q leave");
  });

  test("the watch board of a run folds agents that have ended with the tasks below them, and can show them again", () => {
    const foot = { lostAt: undefined, keys };
    const board = {
      feed: stateOf(),
      chart: new AgentTree(),
      panel: "inbox",
      marked: undefined,
      foot,
    } as const;
    const drawn = (): string => runBoardLines(board, place).join("\n");
    expect(drawn()).toMatch(/─ \? scout[^]*└─ ✓ poet/u);
    board.chart.fold();
    expect(drawn()).toMatch(/─ 4 agents · 1 folded, f shows them · [^]*lead[^]*└─ \? scout[^]*└─ ○ kid/u);
    expect(drawn()).not.toMatch(/poet/u);
    board.chart.fold();
    expect(drawn()).toMatch(/└─ ✓ poet/u);
  });

  test("the money panel of the watch board lists agents with their models, and the panel of an agent its limits", () => {
    expect(boardOf("money").join("\n")).toMatch(
      /─ Money by agent ─+\n.*openai\/gpt-4o +1 call {2}1,000 in {2}100 out {2}\$0\.0035/u,
    );
    const agent = boardOf("agent").join("\n");
    expect(agent).toMatch(/─ lead ─+\n {2}status +Waits: waits for 2 reports\n/u);
    expect(agent).toContain("budget    $0.50, 9 turns");
  });

  test.each([
    [200, 50],
    [80, 24],
    [60, 14],
    [20, 5],
    [3, 2],
    [1, 1],
  ])("the watch board in a terminal of %ix%i has no wider line and no control character", (columns, rows) => {
    for (const panel of ["inbox", "money", "agent"] as const) {
      const lines = boardOf(panel, { columns, rows }, "東\u{202e}\u{1b}[2J".repeat(30));
      expect(lines.length).toBeLessThanOrEqual(rows);
      expect(lines.map(visibleLine)).toEqual(lines);
      expect(Math.max(...lines.map(piMeasure.width))).toBeLessThanOrEqual(Math.max(2, columns));
    }
    expect(boardOf("inbox", { columns: 200, rows: 50 }).join("\n")).toMatch(/─ Money by agent[^]*─ Inbox/u);
  });

  test("the watch board shows a question in full, with hidden characters as escapes, and scrolls to its end and no further", () => {
    const [question] = [...company().asked];
    const long = { ...question!, request: { ...question!.request, input: { content: "x\n".repeat(40) } } };
    const about = { runId: "run_1", question: question! };
    expect(questionLines(about, 0, place).shown.join("\n")).toContain("path: ma\\u202ede.txt");
    const { shown, first } = questionLines({ runId: "run_1", question: long }, 999, { ...place, rows: 10 });
    expect(shown.at(-1)).toMatch(/^0 more lines below/u);
    expect(first).toBe(42 - 8);
  });
});

describe("the watch board of all runs", () => {
  test("the watch board of all runs lists status, cost and age, what waits for the person, and the runs of a search", () => {
    const facts = { live: 1, liveAgents: 2, spentTodayUsd: 1.5, capPerDayUsd: 9 } as never;
    const runs = [
      run,
      { ...run, runId: "run_2", title: null, status: "failed", waitsFor: [], endedAt: 3 } as Run,
    ];
    const board = {
      feed: { facts, inbox: undefined },
      place: "sqlite:x",
      markedRun: "run_2",
      marked: undefined,
    };
    const foot = { lostAt: 31_000, keys };
    const lines = storeBoardLines({ ...board, runs, filter: "", foot }, place);
    expect(lines[1]).toBe("1 live run · 2 agents at work · $1.5000 spent today · cap $9.0000 a day");
    expect(lines[3]).toMatch(/^ {2}\? lead {2}Do it +Waits for you +\$0\.0105 +1 m ago$/u);
    expect(lines[4]).toMatch(/^› ✗ lead {2}run_2 +Failed/u);
    expect(lines.at(-2)).toMatch(/^The server does not answer since 30 s/u);
    expect(fittingRuns(runs, "FAILED lead").map(({ runId }) => runId)).toEqual(["run_2"]);
    expect(fittingRuns(runs, "mara do").map(({ runId }) => runId)).toEqual(["run_1"]);
    expect(fittingRuns(runs, "none")).toEqual([]);
  });
});

test.each([
  ["0.50", { maxCostUsd: 0.5 }],
  ["$1,000", { maxCostUsd: 1_000 }],
  ["5 turns", { maxTurns: 5 }],
  ["2000 tokens", { maxTokens: 2_000 }],
  [" 10 min ", { deadlineMs: 600_000 }],
  ["90s", { deadlineMs: 90_000 }],
  ["2,000,000 tokens", { maxTokens: 2_000_000 }],
])("the watch board accepts an amount of money written as %j", (text, amount) => {
  expect(amountOf(text)).toEqual(amount);
});

test.each(["", "-1", "0", "5 apples", "1e3", "\u{202e}5", "0,50", "1,5", "500 ms", "1.5 turns"])(
  "the watch board refuses an amount of money written as %j and gives examples",
  (text) => {
    expect(() => amountOf(text)).toThrow(
      /invalid amount .*: expected dollars such as 0\.50, or a number of turns/u,
    );
  },
);

test("the watch board says that an order whose answer is lost may have arrived", () => {
  expect(orderProblem(new RequestError("offline", "the server does not answer"))).toMatch(
    /may have the order already/u,
  );
  expect(orderProblem(new RequestError("agent_busy", "no\u{202e}"))).toBe(String.raw`no\u202e`);
});

import { describe, expect, test } from "vitest";
import { visibleLine, type Event, type TaskId } from "../../src/kernel/index.ts";
import { AgentTree, type ChartPlace } from "../../src/surfaces/cli/chat/front/agent-tree.ts";
import { piMeasure } from "../../src/surfaces/cli/chat/screen/pi-board.ts";
import { themeOf } from "../../src/surfaces/cli/chat/screen/theme.ts";
import { RunFold } from "../../src/surfaces/view/run-fold.ts";
import type { RunView } from "../../src/surfaces/view/run-view.ts";
import { company } from "./company-run.ts";

const place: ChartPlace = { columns: 78, rows: 20, theme: themeOf("none"), measure: piMeasure, now: 60_000 };

function chartOf(view: RunView): AgentTree {
  const chart = new AgentTree();
  chart.show(view);
  return chart;
}

describe("the org chart in the terminal", () => {
  test("the org chart in the terminal shows a line per agent below its manager, with status, seat, activity and cost", () => {
    expect(chartOf(company()).lines(place)).toEqual([
      "  AGENT        SEAT  NOW                             TURNS                COST",
      "› ◌ lead       ▪     waits for 2 reports               1/9  $0.0105 of $0.5000",
      "  ├─ ? scout   ▪     waits for you: write                1             $0.0035",
      "  │  └─ ○ kid        waits for a seat                    0             $0.0000",
      "  └─ ✓ poet          green                               1             $0.0035",
    ]);
  });

  test("the org chart in a wide terminal also has the status in words, the model and the time of each agent", () => {
    const [titles, lead] = chartOf(company()).lines({ ...place, columns: 160 });
    expect(titles).toMatch(/AGENT +SEAT +STATUS +NOW +MODEL +TIME +TURNS +COST$/u);
    expect(lead).toMatch(/lead +▪ +Waits +waits for 2 reports +gpt-4o +59 s +1\/9/u);
  });

  test.each([1, 5, 20, 37, 59, 60, 80, 111, 151, 300])(
    "no line of the org chart is wider than a terminal of %i columns",
    (columns) => {
      const lines = chartOf(company("東京のスカウト\u{202e}".repeat(9))).lines({ ...place, columns });
      expect(Math.max(...lines.map(piMeasure.width))).toBeLessThanOrEqual(columns);
      expect(lines.map(visibleLine)).toEqual(lines);
    },
  );

  test("the marked agent of the org chart stays marked and in view when agents are hired and the terminal is low", () => {
    const fold = new RunFold(company());
    const chart = chartOf(fold.view());
    chart.move(3);
    expect(chart.marked?.agentId).toBe("poet");
    for (let at = 0; at < 50; at++)
      fold.add({
        seq: 100 + at,
        at: 100,
        runId: "run_1",
        taskId: "t1",
        agentId: "scout",
        parentId: "t0",
        type: "spawn_start",
        data: { childTaskId: `t${10 + at}`, agentId: "kid", priority: 2 },
      } as unknown as Event);
    chart.show(fold.view());
    const lines = chart.lines({ ...place, rows: 6 });
    expect(lines).toHaveLength(6);
    expect(lines.filter((line) => line.startsWith("›"))).toEqual([expect.stringContaining("poet")]);
    chart.mark("t0" as TaskId);
    expect(chart.lines({ ...place, rows: 6 })[1]).toMatch(/^› ◌ lead/u);
    chart.move(-5);
    expect(chart.marked?.agentId).toBe("lead");
    expect(chart.height).toBe(55);
  });
});

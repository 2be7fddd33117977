import { expect, test } from "vitest";
import type { OrgNode } from "./org-tree.ts";
import { layoutOf, type ChartLayout } from "./chart-layout.ts";

function node(name: string, cap: number, reports: readonly OrgNode[] = []): OrgNode {
  const task = { taskId: name, agentId: name, budget: { maxCostUsd: cap }, total: { costUsd: 0 } };
  return { task, reports, rest: [] } as unknown as OrgNode;
}

function company(caps: readonly number[], width = 1_100): ChartLayout {
  return layoutOf(
    node(
      "root",
      caps.reduce((sum, cap) => sum + cap, 0),
      caps.map((cap, at) => node(`r${at}`, cap)),
    ),
    width,
  );
}

test("the agents of the page's chart keep their places when a manager gets a fourth child", () => {
  expect(places(company([1, 1, 1]))).toHaveLength(4);
  expect(places(company([1, 1, 1, 1]))).toEqual(places(company([1, 1, 1])));
});

test("the connecting lines on one side of the page's chart do not touch each other, and fit above the children", () => {
  const companies = [
    [5, 5, 5, 5],
    [9, 1, 1, 9],
    [8, 8],
    [3, 1, 4],
  ];
  for (const caps of companies) {
    const { strings, cards, width: whole } = company(caps);
    const row = cards[1]?.y ?? 0;
    const bent = strings.flatMap(({ path, width }, at) => {
      const turn = turnOf(path);
      const { x, width: wide } = cards[at + 1]!;
      return turn === null ? [] : [{ turn, width, isLeft: x + wide / 2 < whole / 2 }];
    });
    const sides = [bent.filter(({ isLeft }) => isLeft), bent.filter(({ isLeft }) => !isLeft).toReversed()];
    for (const side of sides)
      for (const [at, { turn, width }] of side.entries()) {
        const next = side[at + 1] ?? { turn: row, width: 0 };
        expect(next.turn - next.width / 2).toBeGreaterThan(turn + width / 2);
      }
    expect(bent.length).toBeGreaterThan(1);
  }
});

test("a connecting line of the page's chart is straight to a child that is nearly below, without a small step", () => {
  const { strings } = company([1, 1, 1, 1, 2], 1_400);
  expect(strings.map(({ path }) => turnOf(path) === null)).toEqual([false, false, true, false, false]);
});

function places({ cards }: ChartLayout): readonly (readonly number[])[] {
  return cards.slice(0, 4).map(({ x, y, width }) => [x, y, width]);
}

/** Where a string turns, or `null` if it is straight. */
function turnOf(path: string): number | null {
  const turn = /Q[\d.]+ ([\d.]+)/u.exec(path)?.[1];
  return turn === undefined ? null : Number(turn);
}

test("many children in the page's chart share one trunk, and their lines stay in the space beside the cards", () => {
  const { trunks, strings, cards } = company(Array<number>(48).fill(1), 700);
  expect(trunks).toHaveLength(1);
  expect(strings).toHaveLength(48);
  const left = cards[0]?.x ?? 0;
  const starts = strings.map(({ path }) => Number(/^M([\d.]+)/u.exec(path)?.[1]));
  expect(Math.min(...starts)).toBeGreaterThan(left);
  expect(company([1, 1, 1], 700).trunks).toEqual([]);
});

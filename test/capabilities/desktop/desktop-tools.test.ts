import { expect, test } from "vitest";
import { DesktopSession, desktopTools } from "../../../src/capabilities/desktop/index.ts";

const tools = desktopTools(new DesktopSession({ display: ":0" }));

test("desktop tools that act have a high risk, those that only read are safe, and all are executed one at a time", () => {
  const acting = tools.filter(({ risk }) => risk === "high").map(({ name }) => name);
  expect(acting).toEqual(["desktop_click", "desktop_drag", "desktop_type", "desktop_press"]);
  expect(
    tools
      .filter(({ risk }) => risk !== "high")
      .every(({ risk, destructive }) => risk === "safe" && !destructive),
  ).toBe(true);
  expect(new Set(tools.map(({ concurrency }) => concurrency))).toEqual(new Set(["sequential"]));
});

test.each([
  ["desktop_click", { x: -1, y: 0 }],
  ["desktop_click", { x: 1.5, y: 0 }],
  ["desktop_click", { x: 1, y: 1, count: 99 }],
  ["desktop_scroll", { x: 1, y: 1, direction: "sideways" }],
  ["desktop_scroll", { x: 1, y: 1, direction: "up", notches: 10_000 }],
  ["desktop_type", { text: "x".repeat(10_001) }],
  ["desktop_press", {}],
])("the desktop tool %s refuses the arguments %j before it does anything", async (name, input) => {
  const found = tools.find((each) => each.name === name);
  await expect((async () => found?.parse(input))()).rejects.toMatchObject({ code: "invalid_argument" });
});

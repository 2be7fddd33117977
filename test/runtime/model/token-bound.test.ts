import { expect, test } from "vitest";
import type { Model, ToolSpec } from "../../../src/kernel/index.ts";
import { boundRequest } from "../../../src/runtime/model/token-bound.ts";

test("the token bound of a tool list follows a schema that changes in a frozen list", () => {
  const model = { provider: "bench", modelId: "bench" } as Model;
  const inputSchema: Record<string, string> = { type: "object" };
  const tools: readonly ToolSpec[] = Object.freeze([
    Object.freeze({ name: "lookup", description: "Looks up", inputSchema }),
  ]);
  const before = boundRequest({ messages: [], tools }, model);
  inputSchema["description"] = "x".repeat(100);
  expect(boundRequest({ messages: [], tools }, model)).toBeGreaterThanOrEqual(before + 100);
});

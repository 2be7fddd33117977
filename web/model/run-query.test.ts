import { expect, test } from "vitest";
import type { Run } from "../api/types.ts";
import { filterOf, fits, tokensOf, tokenWords } from "./run-query.ts";

test.each([
  ["reeve:gateway", "the gateway", [true, true, false]],
  ["reeve:gateway/claude", "claude of the gateway", [true, false, false]],
  ["claude", "claude", [false, false, true]],
] as const)(
  "a filter of the run list by the agent %s is shown as %s and finds its runs",
  (agent, words, kept) => {
    const query = new URLSearchParams({ agent });
    expect(tokensOf(query).map(tokenWords)).toEqual([words]);
    const runs = [
      { agentId: "claude", kind: "gateway" },
      { agentId: "codex", kind: "gateway" },
      { agentId: "claude/eu", kind: "agent" },
    ].map((run) => ({ ...run, metadata: {}, status: "running", createdAt: 1 }) as unknown as Run);
    expect(runs.map((run) => fits(run, filterOf(query)))).toEqual(kept);
  },
);

import { expect, test } from "vitest";
import { noUsage, type JsonValue, type RunResult } from "../../../src/kernel/index.ts";
import { TextWatcher } from "../../../src/surfaces/cli/run/run-watcher.ts";
import type { Terminal } from "../../../src/surfaces/cli/terminal.ts";

function ended(output: string): RunResult<JsonValue> {
  return {
    output,
    status: "completed",
    interruptionReason: null,
    usage: noUsage,
    costUsd: 0,
    lost: { tokens: 0, costUsd: 0 },
    turns: 1,
    runId: "run_1",
    sessionId: "s",
    agentId: "a",
    failure: null,
    metadata: {},
  } as unknown as RunResult<JsonValue>;
}

test.for([
  { isWatched: true, shown: String.raw`red\u{1b}[31m` + "\nnext" },
  { isWatched: false, shown: "red\u{1b}[31m\nnext" },
])(
  "an answer that was not streamed steers no terminal (watched: $isWatched)",
  async ({ isWatched, shown }) => {
    const out: string[] = [];
    const terminal: Terminal = {
      out: async (line) => void out.push(line),
      say: () => undefined,
      put: () => undefined,
      isWatched,
      ask: async () => undefined,
      input: async () => "",
      onInterrupt: () => () => undefined,
      env: {},
    };
    await new TextWatcher(terminal).end(ended("red\u{1b}[31m\nnext"));
    expect(out).toEqual([shown]);
  },
);

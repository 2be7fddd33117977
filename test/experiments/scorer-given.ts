import type {
  Score,
  ScoredRun,
  ScoredToolCall,
  ScorerFunction,
  ScorerInput,
} from "../../src/experiments/contract.ts";
import { runScorer as runNamed, type RunScorerOptions } from "../../src/experiments/run-scorer.ts";
import type { JsonValue, RunId, TaskId } from "../../src/kernel/index.ts";

/** What a scorer receives for an answer. */
export function given(
  output: JsonValue,
  expected: JsonValue = null,
  run: Partial<ScoredRun> = {},
  rest: Partial<ScorerInput> = {},
): ScorerInput {
  return {
    input: "What is the capital?",
    output,
    expected,
    caseId: "one",
    variant: "base",
    run: {
      runId: "run_1" as RunId,
      taskId: "t1" as TaskId,
      status: "completed",
      costUsd: 0.01,
      tokens: 100,
      turns: 2,
      durationMs: 1_500,
      toolCalls: [],
      async *events() {},
      ...run,
    },
    ...rest,
  };
}

/** A tool call as a scorer sees it. */
export function call(name: string, asked: JsonValue): ScoredToolCall {
  return { name, arguments: asked, result: "done", isError: false };
}

/** Runs a function as an experiment does. */
export function runScorer(
  scorer: ScorerFunction,
  asked: ScorerInput,
  options?: RunScorerOptions,
): Promise<Score> {
  return runNamed({ name: scorer.name, scorer }, asked, options);
}

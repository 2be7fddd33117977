import type { RunView } from "../../src/surfaces/view/run-view.ts";

/** The calls with an answer of one model. */
interface ModelLine {
  readonly calls: number;
  readonly input: number;
  readonly output: number;
  readonly costUsd: number | null;
}

const noCalls: ModelLine = { calls: 0, input: 0, output: 0, costUsd: 0 };

/** The models of a run with what they answered, by name. With the lost calls they add up to what the root spent. */
export function modelLines({ money }: Pick<RunView, "money">): readonly (readonly [string, ModelLine])[] {
  const lines = new Map<string, ModelLine>();
  for (const { model, calls, usage } of money) {
    const { calls: known, input, output, costUsd } = lines.get(model) ?? noCalls;
    lines.set(model, {
      calls: known + calls,
      input: input + usage.inputTokens,
      output: output + usage.outputTokens,
      costUsd: costUsd === null || usage.costUsd === null ? null : costUsd + usage.costUsd,
    });
  }
  return [...lines].filter(([, { calls }]) => calls > 0);
}

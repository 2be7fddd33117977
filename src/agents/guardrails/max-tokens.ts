import { Fault, type Guardrail, type GuardrailStage } from "../../kernel/index.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

export interface MaxTokensOptions {
  /** The most tokens a text may have at each stage. */
  readonly limits: Partial<Readonly<Record<GuardrailStage, number>>>;
  /** Unless told, what is too long is blocked. */
  readonly decision?: "warn" | "block" | "halt";
  /** Unless told: four characters a token, a rough measure. */
  readonly count?: (text: string) => number;
}

/** Keeps texts from getting too long. Not a budget: that counts what is paid. */
export function maxTokens({ limits, decision = "block", count = estimate }: MaxTokensOptions): Guardrail {
  const stages: { -readonly [Stage in GuardrailStage]?: "warn" | "block" | "halt" } = {};
  for (const [stage, limit] of Object.entries(limits) as [GuardrailStage, number | undefined][]) {
    if (limit === undefined) continue;
    if (!(limit >= 0)) {
      throw new Fault(
        "invalid_argument",
        `the limit of maxTokens at ${stage} is ${limit}: it must be a number from 0`,
      );
    }
    stages[stage] = decision;
  }
  return textGuardrail({
    name: "max_tokens",
    stages: stages satisfies GuardedStages,
    examine: (text, stage) => {
      const limit = limits[stage] ?? Infinity;
      const tokens = count(text);
      // So written that a count that is no number is too many.
      return tokens <= limit ? undefined : `it has about ${tokens} tokens, and ${limit} are allowed`;
    },
  });
}

function estimate(text: string): number {
  return Math.ceil(text.length / 4);
}

import {
  Fault,
  type Guardrail,
  type GuardrailStage,
  type OnGuardrailError,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { textGuardrail, type GuardedStages } from "./text-guardrail.ts";

/** Options of `maxTokens`. */
export interface MaxTokensOptions {
  /** Maximum number of tokens of a text at each stage. */
  readonly limits: Partial<Readonly<Record<GuardrailStage, number>>>;
  /** The decision about a text that is too long. Default: `"block"`. */
  readonly decision?: "warn" | "block" | "halt";
  /** Counts the tokens of a text. Default: a quarter of the characters, a rough estimate. */
  readonly count?: (text: string) => number;
  /**
   * The verdict that replaces an error. Default: as for every guardrail (S4), `"block"` for the input and for tool
   * calls.
   */
  readonly onError?: OnGuardrailError;
}

const knownOptions = optionTable({
  limits: is.named("limits", "limits: { input: 8_000 }", { required: true }),
  decision: is.choice(["warn", "block", "halt"], { default: "block" }),
  count: is.callback(),
  onError: is.choice(["block", "allow"]),
} satisfies OptionKinds<MaxTokensOptions>);

/** Creates a guardrail that limits the length of texts. It does not limit costs; a budget does. */
export function maxTokens(options: MaxTokensOptions): Guardrail {
  const { limits, decision, count = estimate, onError } = knownOptions.read("maxTokens()", options);
  const stages: { -readonly [Stage in GuardrailStage]?: "warn" | "block" | "halt" } = {};
  for (const [stage, limit] of Object.entries(limits) as [GuardrailStage, number | undefined][]) {
    if (limit === undefined) continue;
    if (!(limit >= 0)) {
      throw new Fault(
        "invalid_argument",
        `invalid limit ${limit} of maxTokens at ${stage}: expected a number from 0`,
      );
    }
    stages[stage] = decision;
  }
  return textGuardrail({
    name: "max_tokens",
    ...(onError !== undefined && { onError }),
    stages: stages satisfies GuardedStages,
    examine: (text, stage) => {
      const limit = limits[stage] ?? Infinity;
      const tokens = count(text);
      // Written so that a count of NaN is too long.
      return tokens <= limit ? undefined : `the text has about ${tokens} tokens; the limit is ${limit}`;
    },
  });
}

function estimate(text: string): number {
  return Math.ceil(text.length / 4);
}

import {
  Fault,
  type Guardrail,
  type GuardrailContext,
  type GuardrailDecision,
  type GuardrailStage,
  type OnGuardrailError,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { textOfOutput, textOfValue } from "./guarded-text.ts";

/** The stages at which a guardrail runs, with its decision for a finding. */
export type GuardedStages = Partial<Readonly<Record<GuardrailStage, "warn" | "block" | "halt">>>;

/** Options of `textGuardrail`. */
export interface TextGuardrailOptions {
  readonly name: string;
  readonly stages: GuardedStages;
  readonly models?: Guardrail["models"];
  /**
   * The verdict that replaces an error. Default: as for every guardrail (S4), `"block"` for the input and for tool
   * calls.
   */
  readonly onError?: OnGuardrailError;
  /**
   * Returns what is wrong with a text, or `undefined`. It must not quote the text, because the reason is logged and
   * shown.
   */
  readonly examine: (
    text: string,
    stage: GuardrailStage,
    context: GuardrailContext,
  ) => string | undefined | Promise<string | undefined>;
}

const allow: GuardrailDecision = Object.freeze({ decision: "allow" });
const allStages: readonly string[] = [
  "input",
  "tool_call",
  "tool_result",
  "output",
] satisfies GuardrailStage[];
const decisions: readonly string[] = ["warn", "block", "halt"];

const knownOptions = optionTable({
  name: is.text(),
  stages: is.any,
  models: is.any,
  onError: is.choice(["block", "allow"]),
  examine: is.callback(),
} satisfies OptionKinds<TextGuardrailOptions>);

/** Creates a guardrail that applies the same check to the text of each of its stages. */
export function textGuardrail(options: TextGuardrailOptions): Guardrail {
  const { name, stages, models, onError, examine } = knownOptions.read("textGuardrail()", options);
  checkStages(name, stages);
  const look = async (
    text: string,
    stage: GuardrailStage,
    context: GuardrailContext,
  ): Promise<GuardrailDecision> => {
    const decision = stages[stage];
    const reason = decision === undefined ? undefined : await examine(text, stage, context);
    return decision === undefined || reason === undefined ? allow : { decision, reason };
  };
  const guardrail: { -readonly [Key in keyof Guardrail]: Guardrail[Key] } = { name };
  if (models !== undefined) guardrail.models = models;
  if (onError !== undefined) guardrail.onError = onError;
  if (stages.input !== undefined)
    guardrail.onInput = (input, context) => look(textOfValue(input), "input", context);
  if (stages.tool_call !== undefined)
    guardrail.beforeCall = ({ input }, context) => look(textOfValue(input), "tool_call", context);
  if (stages.tool_result !== undefined)
    guardrail.afterCall = (_call, { output }, context) => look(textOfOutput(output), "tool_result", context);
  if (stages.output !== undefined) guardrail.onOutput = (output, context) => look(output, "output", context);
  return Object.freeze(guardrail);
}

function checkStages(name: string, stages: GuardedStages): void {
  const entries = Object.entries(stages);
  for (const [stage, decision] of entries) {
    if (!allStages.includes(stage) || (decision !== undefined && !decisions.includes(decision))) {
      throw new Fault(
        "invalid_argument",
        `invalid stages of guardrail ${name}: ${stage} is ${JSON.stringify(decision)}; expected a map of ${allStages.join(", ")} to ${decisions.join(", ")}`,
      );
    }
  }
  if (entries.every(([, decision]) => decision === undefined)) {
    throw new Fault(
      "invalid_argument",
      `guardrail ${name} has no stages; use at least one of ${allStages.join(", ")}`,
    );
  }
}

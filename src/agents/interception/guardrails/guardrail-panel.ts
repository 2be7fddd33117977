import {
  describeValue,
  eventDraft,
  Fault,
  readProperty,
  stopsTask,
  type EmittableEvent,
  type Guardrail,
  type GuardrailDecision,
  type GuardrailStage,
  type OnGuardrailError,
} from "../../../kernel/index.ts";

export interface Hearing {
  readonly stage: GuardrailStage;
  readonly callId?: string;
  /** Calls the method of a guardrail for the stage. */
  readonly ask: (guardrail: Guardrail) => GuardrailDecision | Promise<GuardrailDecision> | undefined;
  /** Emits decisions and errors. */
  readonly tell: (event: EmittableEvent) => void;
}

/** A warning of a guardrail. */
interface Warning {
  readonly guardrail: string;
  readonly reason: string;
}

/** The objection of a guardrail that stops what it checks. */
export interface StoppingObjection extends Warning {
  readonly decision: "block" | "halt";
}

/**
 * The combined decision of the guardrails of one stage. Warnings are collected; the first block or halt ends the
 * stage.
 */
export interface PanelVerdict {
  readonly warnings: readonly Warning[];
  readonly stop?: StoppingObjection;
}

/** S4: the decision that replaces an error of a guardrail without the option `onError`. */
const errorCountsAs: Readonly<Record<GuardrailStage, OnGuardrailError>> = {
  input: "block",
  tool_call: "block",
  tool_result: "allow",
  output: "allow",
};

/**
 * Asks guardrails one after another. S4: an error of a guardrail is recorded and counts as `block` or `allow`. A
 * fault that stops the task is thrown again.
 */
export async function hear(guardrails: readonly Guardrail[], hearing: Hearing): Promise<PanelVerdict> {
  const { stage, callId, tell } = hearing;
  const warnings: Warning[] = [];
  for (const guardrail of guardrails) {
    const verdict = await decisionOf(guardrail, hearing);
    if (verdict.decision === "allow") continue;
    const { name } = guardrail;
    const { decision, reason } = verdict;
    const of = callId === undefined ? {} : { callId };
    tell(eventDraft("guardrail_decision", { guardrail: name, stage, decision, reason, ...of }));
    if (decision !== "warn") return { warnings, stop: { guardrail: name, decision, reason } };
    warnings.push({ guardrail: name, reason });
  }
  return { warnings };
}

/**
 * Returns the decision of one guardrail. The reason of a failed guardrail does not quote the error, which may
 * contain the text that the guardrail withholds.
 */
async function decisionOf(guardrail: Guardrail, { stage, ask, tell }: Hearing): Promise<GuardrailDecision> {
  const { name, onError = errorCountsAs[stage] } = guardrail;
  try {
    return readDecision(name, await ask(guardrail));
  } catch (error) {
    if (stopsTask(error)) throw error;
    const failure = Fault.from(error).toJSON();
    tell(eventDraft("guardrail_error", { guardrail: name, stage, failure }));
    if (onError === "allow") return { decision: "allow" };
    return {
      decision: "block",
      reason: `the guardrail failed (${failure.code}), so its decision is unknown`,
    };
  }
}

/**
 * Checks a decision and returns it. Throws if it cannot be read. Its fields are read only once, because a getter
 * may return different values.
 */
function readDecision(name: string, verdict: unknown): GuardrailDecision {
  const decision = readProperty(verdict, "decision");
  if (decision === "allow") return { decision };
  const reason = readProperty(verdict, "reason");
  const known = decision === "warn" || decision === "block" || decision === "halt";
  if (known && typeof reason === "string") return { decision, reason };
  throw new Fault(
    "invalid_argument",
    `guardrail ${name} returned the invalid decision ${describeDecision(verdict, decision)}: expected { decision: "allow" }, or { decision: "warn" | "block" | "halt", reason }`,
  );
}

function describeDecision(verdict: unknown, decision: unknown): string {
  if (typeof verdict !== "object" || verdict === null) return describeValue(verdict);
  return `{ decision: ${describeValue(decision)} } without a known decision and its reason`;
}

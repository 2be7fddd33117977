import {
  eventDraft,
  Fault,
  stopsTask,
  type EmittableEvent,
  type Guardrail,
  type GuardrailDecision,
  type GuardrailStage,
} from "../../kernel/index.ts";

export interface Hearing {
  readonly stage: GuardrailStage;
  readonly callId?: string;
  /** Asks a guardrail. Returns `undefined` if the guardrail does not implement the stage. */
  readonly ask: (guardrail: Guardrail) => GuardrailDecision | Promise<GuardrailDecision> | undefined;
  /** Emits decisions and errors. */
  readonly tell: (event: EmittableEvent) => void;
}

export interface Objection {
  readonly guardrail: string;
  readonly reason: string;
}

/** The combined decision of the guardrails of one stage: warnings accumulate; the first block or halt ends it. */
export interface PanelVerdict {
  readonly warnings: readonly Objection[];
  readonly stop?: Objection & { readonly decision: "block" | "halt" };
}

/**
 * Asks guardrails one after another. S4: an error of a guardrail is recorded and decides nothing; a fault that stops
 * the task is rethrown.
 */
export async function hear(guardrails: readonly Guardrail[], hearing: Hearing): Promise<PanelVerdict> {
  const { stage, callId, ask, tell } = hearing;
  const warnings: Objection[] = [];
  for (const guardrail of guardrails) {
    const { name } = guardrail;
    try {
      const verdict = await ask(guardrail);
      if (verdict === undefined || isAllow(name, verdict)) continue;
      const { decision, reason } = verdict;
      const of = callId === undefined ? {} : { callId };
      tell(eventDraft("guardrail_decision", { guardrail: name, stage, decision, reason, ...of }));
      if (decision !== "warn") return { warnings, stop: { guardrail: name, decision, reason } };
      warnings.push({ guardrail: name, reason });
    } catch (error) {
      if (stopsTask(error)) throw error;
      const failure = Fault.from(error).toJSON();
      tell(eventDraft("guardrail_error", { guardrail: name, stage, failure }));
    }
  }
  return { warnings };
}

function isAllow(name: string, verdict: GuardrailDecision): verdict is { readonly decision: "allow" } {
  const { decision } = verdict;
  if (decision === "allow") return true;
  const known = decision === "warn" || decision === "block" || decision === "halt";
  if (known && typeof verdict.reason === "string") return false;
  throw new Fault(
    "invalid_argument",
    `guardrail ${name} returned the invalid decision ${JSON.stringify(verdict)}: expected allow, or warn, block or halt with a reason`,
  );
}

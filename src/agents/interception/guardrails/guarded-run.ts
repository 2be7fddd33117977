import {
  assistantMessage,
  eventDraft,
  Fault,
  toolCallsOf,
  Transcript,
  type EmittableEvent,
  type Guardrail,
  type GuardrailContext,
  type GuardrailDecision,
  type JsonObject,
  type JsonValue,
  type Model,
  type RunContext,
} from "../../../kernel/index.ts";
import { hear } from "./guardrail-panel.ts";

/** The guardrail that stopped an invocation at its input or output, and the reason. */
export interface TrippedGuardrail {
  readonly guardrail: string;
  readonly reason: string;
}

/**
 * Applies the guardrails of the stages `input` and `output` to an invocation. Each stage is a step, so that a
 * replay uses the recorded decision. A stage without guardrails adds no step (F1).
 */
export class GuardedRun {
  readonly #guardrails: readonly Guardrail[];
  readonly #ctx: RunContext;

  constructor(guardrails: readonly Guardrail[], ctx: RunContext) {
    this.#guardrails = guardrails;
    this.#ctx = ctx;
  }

  /**
   * Checks the input before any call is paid. `undefined` as input means that the invocation continues a session
   * without an input.
   */
  async input(input: JsonValue | undefined): Promise<TrippedGuardrail | undefined> {
    if (input === undefined) return undefined;
    const guardrails = this.#guardrails.filter((each) => each.onInput !== undefined);
    return this.#stage("input", guardrails, (guardrail, context) => guardrail.onInput?.(input, context));
  }

  /** Checks the output before it is returned. */
  async output(output: string): Promise<TrippedGuardrail | undefined> {
    const guardrails = output === "" ? [] : this.#guardrails.filter((each) => each.onOutput !== undefined);
    return this.#stage("output", guardrails, (guardrail, context) => guardrail.onOutput?.(output, context));
  }

  async #stage(
    stage: "input" | "output",
    guardrails: readonly Guardrail[],
    ask: (
      guardrail: Guardrail,
      context: GuardrailContext,
    ) => GuardrailDecision | Promise<GuardrailDecision> | undefined,
  ): Promise<TrippedGuardrail | undefined> {
    if (guardrails.length === 0) return undefined;
    const { agentId, taskId, facts } = this.#ctx;
    const tripped = await this.#ctx.step<JsonObject | null>(`guardrails ${stage}`, async (step) => {
      const context: GuardrailContext = Object.freeze({
        agentId,
        taskId,
        facts,
        get ctx() {
          return step.ctx;
        },
      });
      const tell = (event: EmittableEvent): void => step.ctx.emitEvent(event);
      const { stop } = await hear(guardrails, { stage, ask: (guardrail) => ask(guardrail, context), tell });
      return stop === undefined ? null : { guardrail: stop.guardrail, reason: stop.reason };
    });
    return tripped === null ? undefined : (tripped as unknown as TrippedGuardrail);
  }
}

/**
 * Calls `onTurnStart` of each guardrail, before the step `turn` and its event `input`. S4: an error is recorded and has
 * no other effect.
 */
export function startGuardrails(guardrails: readonly Guardrail[], ctx: RunContext): void {
  for (const guardrail of guardrails) {
    const fail = (error: unknown): void => {
      const failure = Fault.from(error).toJSON();
      ctx.emitEvent(eventDraft("guardrail_error", { guardrail: guardrail.name, stage: "input", failure }));
    };
    try {
      const started: unknown = guardrail.onTurnStart?.(ctx.facts);
      if (started instanceof Promise) fail(refusedStart(started));
    } catch (error) {
      fail(error);
    }
  }
}

/**
 * Creates the fault for an `onTurnStart` that is asynchronous. A rejection of its promise would otherwise end the
 * process.
 */
function refusedStart(started: Promise<unknown>): Fault {
  started.catch(() => undefined);
  return new Fault(
    "invalid_argument",
    "onTurnStart returned a promise, but is synchronous; do not declare it async",
  );
}

/**
 * Returns a conversation whose last answer was withheld or changed. The returned text replaces its text and
 * reasoning, so that no later turn contains them. Tool calls stay, because their results refer to them.
 */
export function withAnswer(transcript: Transcript, text: string): Transcript {
  const messages = [...transcript];
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const answer = messages[last];
  if (answer?.role !== "assistant") return transcript;
  const own = answer.providerMetadata?.["reeve"];
  const replaced = assistantMessage([{ type: "text", text }, ...toolCallsOf(answer)]);
  // The metadata of a provider belongs to the old text; the metadata of the runtime belongs to the message.
  messages[last] = own === undefined ? replaced : { ...replaced, providerMetadata: { reeve: own } };
  return Transcript.of(messages);
}

/** The agent's models together with those of its guardrails. */
export function withGuardrailModels(
  models: Readonly<Record<string, Model>>,
  guardrails: readonly Guardrail[],
): Readonly<Record<string, Model>> {
  const all: Record<string, Model> = { ...models };
  for (const { name, models: brought = {} } of guardrails) {
    for (const [role, named] of Object.entries(brought)) {
      const model = named === "main" ? mainOf(models, name) : named;
      if (Object.hasOwn(all, role) && all[role] !== model) {
        throw new Fault(
          "invalid_argument",
          `guardrail ${name} defines a model for the role ${role}, which exists already; give each guardrail its own name`,
        );
      }
      all[role] = model;
    }
  }
  return all;
}

function mainOf({ main }: Readonly<Record<string, Model>>, guardrail: string): Model {
  if (main !== undefined) return main;
  throw new Fault(
    "invalid_argument",
    `guardrail ${guardrail} uses the agent's main model, but the agent has none; give the guardrail its own model`,
  );
}

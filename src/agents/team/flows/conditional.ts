import {
  describeValue,
  eventDraft,
  Fault,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../../kernel/index.ts";
import { adoptWorkerResult, runWorker, keepPartialText } from "../run-worker.ts";
import { loadPromptContext } from "../../context/prompt-context.ts";
import { refuseDuplicateNames } from "../duplicate-names.ts";
import { checkAgent } from "../../base/part-check.ts";
import { briefOf, endStatus, inFormWanted } from "./flow-step.ts";
import { stepEnd, stepStart, withFlowEvents } from "./flow-events.ts";

export interface ConditionalFlowOptions {
  /**
   * Receives the input and decides which agent runs. The result is journaled, so that the function is called only
   * once; any value is converted to a boolean. If it throws, the error is recorded and counts as `false`.
   */
  readonly predicate: (text: string) => boolean | Promise<boolean>;
  readonly ifTrue: HostedAgent;
  readonly ifFalse: HostedAgent;
}

/** An architecture that runs one of two agents, depending on the input. */
export class ConditionalFlow implements Architecture {
  readonly name = "conditional";
  readonly requiresModel = false;
  readonly hasOwnCalls = false;
  readonly #options: ConditionalFlowOptions;

  constructor(options: ConditionalFlowOptions) {
    if (typeof options.predicate !== "function")
      throw new Fault(
        "invalid_argument",
        `invalid predicate ${describeValue(options.predicate)} of a ${this.name} flow: expected a function of the input`,
      );
    for (const option of ["ifTrue", "ifFalse"] as const)
      checkAgent(`${option} of a ${this.name} flow`, options[option]);
    refuseDuplicateNames(`a ${this.name} flow`, [options.ifTrue, options.ifFalse]);
    this.#options = options;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return withFlowEvents(this.name, session, this.#go(session, deps, prompt));
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    const { ifTrue, ifFalse } = this.#options;
    return { ifTrue, ifFalse };
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const { ifTrue, ifFalse } = this.#options;
    const flow = this.name;
    const question = await loadPromptContext(session, deps, prompt);
    const worker = (await this.#holds(deps, prompt)) ? ifTrue : ifFalse;
    const step = worker.id;
    yield stepStart({ flow, step });
    const input = inFormWanted(briefOf(prompt, question), question);
    const end = await runWorker(deps, {
      worker,
      input,
      options: { handsOver: true },
      onPartialText: keepPartialText(session),
    });
    yield stepEnd({ flow, step, status: endStatus(end) });
    adoptWorkerResult(session, deps, step, end);
  }

  #holds({ ctx }: Dependencies, prompt: string): Promise<boolean> {
    return ctx.step("predicate", async (step) => {
      try {
        // The result may be any value, such as that of `match` or `find`, which is not JSON (J10), so it is converted.
        const given: unknown = await this.#options.predicate(prompt);
        return Boolean(given);
      } catch (error) {
        step.ctx.emitEvent(
          eventDraft("hook_error", { hook: "predicate", failure: Fault.from(error).toJSON() }),
        );
        return false;
      }
    });
  }
}

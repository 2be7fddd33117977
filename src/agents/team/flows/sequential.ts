import type {
  HostedAgent,
  AgentSession,
  Architecture,
  Dependencies,
  EmittableEvent,
} from "../../../kernel/index.ts";
import { setAnswer } from "../../base/answer-text.ts";
import { keepPartialText, requireAnswer, runWorker } from "../run-worker.ts";
import { loadPromptContext } from "../../context/prompt-context.ts";
import {
  briefOf,
  endStatus,
  flowSteps,
  inFormWanted,
  joined,
  workersOf,
  type FlowStep,
} from "./flow-step.ts";
import { stepEnd, stepStart, withFlowEvents } from "./flow-events.ts";

/**
 * An architecture that runs agents one after another. Each receives the input and all earlier answers; the answer
 * of the last step is the flow's answer. All answers are in the metadata `sequential: { answers: [{ step, answer }]
 * }`. A step without an answer stops the flow; the output is then the latest answer. If a step has an empty answer,
 * the previous answer stays.
 */
export class SequentialFlow implements Architecture {
  readonly name = "sequential";
  readonly requiresModel = false;
  readonly hasOwnCalls = false;
  readonly #steps: readonly FlowStep[];

  constructor(steps: readonly HostedAgent[]) {
    this.#steps = flowSteps(this.name, "steps", steps);
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return withFlowEvents(this.name, session, this.#go(session, deps, prompt));
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    return workersOf(this.#steps);
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const flow = this.name;
    const question = await loadPromptContext(session, deps, prompt);
    const texts = [prompt];
    const answers: { readonly step: string; readonly answer: string }[] = [];
    for (const [index, { name: step, worker }] of this.#steps.entries()) {
      yield stepStart({ flow, step });
      const brief = briefOf(joined(texts), question);
      const isLast = index === this.#steps.length - 1;
      const result = await runWorker(deps, {
        worker,
        input: isLast ? inFormWanted(brief, question) : brief,
        options: { handsOver: isLast },
        onPartialText: keepPartialText(session),
      });
      if (result.kind !== "refused") setAnswer(session, result.text);
      yield stepEnd({ flow, step, status: endStatus(result) });
      const answer = requireAnswer(deps, step, result);
      texts.push(answer);
      answers.push({ step, answer });
      session.metadata[flow] = { answers: [...answers] };
    }
  }
}

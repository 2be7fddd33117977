import type {
  HostedAgent,
  AgentSession,
  Architecture,
  Dependencies,
  EmittableEvent,
} from "../../kernel/index.ts";
import { requireAnswer, runWorker } from "../architectures/run-worker.ts";
import { loadPromptContext } from "../architectures/prompt-context.ts";
import { briefOf, endStatus, flowSteps, joined, workersOf, type FlowStep } from "./flow-step.ts";
import { stepEnd, stepStart, toldFlow } from "./told-flow.ts";

/**
 * One agent after another. Each is told the input and all that was said so far; the answer is all of it. A step that does not answer
 * stops the flow, and what was said so far is what there is of an answer.
 */
export class SequentialFlow implements Architecture {
  readonly name = "sequential";
  readonly requiresModel = false;
  /** It begins with the input. */
  readonly supportsStructuredOutput = false;
  readonly #steps: readonly FlowStep[];

  constructor(steps: readonly HostedAgent[]) {
    this.#steps = flowSteps(this.name, "steps", steps);
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return toldFlow(this.name, session, this.#go(session, deps, prompt));
  }

  declaredWorkers(): Readonly<Record<string, HostedAgent>> {
    return workersOf(this.#steps);
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const flow = this.name;
    const question = await loadPromptContext(session, deps, prompt);
    const said = [prompt];
    for (const { name: step, worker } of this.#steps) {
      yield stepStart({ flow, step });
      const heard = (text: string): void => {
        if (text !== "") session.output = joined([...said, text]);
      };
      const end = await runWorker(deps, {
        worker,
        input: briefOf(joined(said), question),
        onPartialText: heard,
      });
      if (end.kind !== "refused") heard(end.text);
      yield stepEnd({ flow, step, status: endStatus(end) });
      said.push(requireAnswer(deps, step, end));
    }
    session.output = joined(said);
  }
}

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
import { stepEnd, stepStart, withFlowEvents } from "./flow-events.ts";

/**
 * An architecture that runs agents one after another. Each receives the input and all earlier answers, and the flow's
 * answer consists of all of them. A step without an answer stops the flow; the output then holds the answers so far.
 */
export class SequentialFlow implements Architecture {
  readonly name = "sequential";
  readonly requiresModel = false;
  /** The answer begins with the input, so it never matches a schema. */
  readonly supportsStructuredOutput = false;
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

import {
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
} from "../../kernel/index.ts";
import { withAnswer } from "../guardrails/guarded-run.ts";
import { requireCount } from "./option-checks.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
} from "./prompt-context.ts";
import { react } from "./react.ts";
import { architectureEvent } from "./role-call.ts";
import { isBlank, setAnswer } from "./answer-text.ts";
import { userTextsAfter } from "./user-messages.ts";

export interface SelfRefineOptions {
  /** Of a critique and a new version each. 3 unless told. */
  readonly maxRounds?: number;
  /** A critique with these words in it ends the rounds, whatever their case. `no issues` unless told. */
  readonly stopPhrase?: string;
}

/**
 * Lets its base answer, then criticises and rewrites the answer until the critic has nothing left to say. Critic and refiner use no
 * tools. Roles: `critic`, `refiner`, and those of the base.
 */
export class SelfRefine implements Architecture {
  readonly name = "self-refine";
  readonly base: Architecture;
  readonly #maxRounds: number;
  readonly #stopPhrase: string;

  constructor(
    base: Architecture = react(),
    { maxRounds = 3, stopPhrase = "no issues" }: SelfRefineOptions = {},
  ) {
    this.base = base;
    this.#maxRounds = requireCount("selfRefine", "maxRounds", maxRounds);
    this.#stopPhrase = stopPhrase.trim();
    if (this.#stopPhrase === "")
      throw new Fault("invalid_argument", "stopPhrase of selfRefine is empty: every critique would end it");
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const from = session.messages.length;
    yield* this.base.run(session, deps, prompt);
    // What ends on a tool's result, as a hand-over does, is no answer.
    if (session.interrupted || session.messages.at(-1)?.role === "tool") return;
    const task = [prompt, ...userTextsAfter(session, from)].join("\n\n");
    for (let round = 1; round <= this.#maxRounds; round++) {
      deps.ctx.check();
      yield architectureEvent("self_refine", "round_started", { round });
      const critique = await askSupportingRole(session, deps, promptContext, {
        role: "critic",
        duty: `You look for what is wrong with an answer or missing from it. Say what to change, point by point, and nothing else. If there is nothing worth changing, say: ${this.#stopPhrase}.`,
        prompt: markdownSections({ Task: task, Answer: session.output }),
      });
      yield architectureEvent("self_refine", "critique", { round, critique });
      if (isBlank(critique) || critique.toLowerCase().includes(this.#stopPhrase.toLowerCase())) {
        yield architectureEvent("self_refine", "converged", { round });
        return;
      }
      const version = await askAnsweringRole(session, deps, promptContext, {
        role: "refiner",
        duty: "Write the answer to the task anew, with what the critique asks for. Give the whole answer and nothing else.",
        prompt: markdownSections({ Task: task, Answer: session.output, Critique: critique }),
      });
      session.metadata["selfRefine"] = { rounds: round };
      if (!setAnswer(session, version)) {
        yield architectureEvent("self_refine", "empty_answer", { round });
        continue;
      }
      // What was said before is the base's first version, if it was said at all.
      if (session.messages.slice(from).some(({ role }) => role === "assistant"))
        session.messages = withAnswer(session.messages, session.output);
      yield architectureEvent("self_refine", "refined", { round, output: session.output });
    }
    yield architectureEvent("self_refine", "max_rounds_reached", { rounds: this.#maxRounds });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.base.declaredWorkers();
  }
}

/** An answer, criticised and rewritten until nothing is left to say. */
export function selfRefine(base?: Architecture, options?: SelfRefineOptions): SelfRefine {
  return new SelfRefine(base, options);
}

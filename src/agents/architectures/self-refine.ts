import {
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { checkArchitecture } from "../base/part-check.ts";
import { withAnswer } from "../interception/guardrails/guarded-run.ts";
import {
  askAnsweringRole,
  askSupportingRole,
  loadPromptContext,
  markdownSections,
} from "../context/prompt-context.ts";
import { react } from "./react.ts";
import { architectureEvent } from "../context/role-call.ts";
import { isBlank, setAnswer } from "../base/answer-text.ts";
import { userTextsAfter } from "../base/user-messages.ts";

/** Options of `selfRefine`. */
export interface SelfRefineOptions {
  /** Maximum number of rounds of one critique and one new version each. Default: 3. */
  readonly maxRounds?: number;
  /** Phrase in a critique that ends the rounds, in any case. Default: `no issues`. */
  readonly stopPhrase?: string;
}

const knownOptions = optionTable({
  maxRounds: is.integer({ from: 1, default: 3 }),
  stopPhrase: is.text({
    empty: false,
    default: "no issues",
    hint: "every critique would contain an empty phrase",
  }),
} satisfies OptionKinds<SelfRefineOptions>);

/** A version of the answer and what the critic said about it. */
interface RoundOfFeedback {
  readonly answer: string;
  readonly critique: string;
}

/**
 * Runs a base architecture, then criticises and rewrites its answer until the critic finds no more issues. Critic and
 * refiner see all earlier versions with their critiques, and use no tools.
 *
 * Roles: `critic`, `refiner`, and the roles of the base.
 */
export class SelfRefine implements Architecture {
  readonly name = "self-refine";
  readonly base: Architecture;
  readonly #maxRounds: number;
  readonly #stopPhrase: string;

  constructor(base: Architecture = react(), options: SelfRefineOptions = {}) {
    const { maxRounds, stopPhrase } = knownOptions.read("selfRefine()", options);
    this.base = checkArchitecture(base, "base of selfRefine()");
    this.#maxRounds = maxRounds;
    this.#stopPhrase = stopPhrase.trim();
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const from = session.messages.length;
    yield* this.base.run(session, deps, prompt);
    // A conversation that ends with a tool result, such as a handoff, has no answer to refine.
    if (session.interrupted || session.messages.at(-1)?.role === "tool") return;
    const task = [prompt, ...userTextsAfter(session, from)].join("\n\n");
    const feedback: RoundOfFeedback[] = [];
    for (let round = 1; round <= this.#maxRounds; round++) {
      deps.ctx.check();
      yield architectureEvent("self_refine", "round_started", { round });
      const critique = await askSupportingRole(session, deps, promptContext, {
        role: "critic",
        roleInstructions: `You look for what is wrong with an answer or missing from it. List what to change, point by point, and write nothing else. If nothing is worth changing, reply: ${this.#stopPhrase}.`,
        prompt: markdownSections({
          Task: task,
          "Earlier rounds": earlierRounds(feedback),
          Answer: session.output,
        }),
      });
      yield architectureEvent("self_refine", "critique", { round, critique });
      if (isBlank(critique) || critique.toLowerCase().includes(this.#stopPhrase.toLowerCase())) {
        yield architectureEvent("self_refine", "converged", { round });
        return;
      }
      const version = await askAnsweringRole(session, deps, promptContext, {
        role: "refiner",
        roleInstructions:
          "Rewrite the answer to the task so that it follows the critique. Do not repeat a mistake that an earlier round criticised. Give the whole answer and nothing else.",
        prompt: markdownSections({
          Task: task,
          "Earlier rounds": earlierRounds(feedback),
          Answer: session.output,
          Critique: critique,
        }),
      });
      feedback.push({ answer: session.output, critique });
      session.metadata["selfRefine"] = { rounds: round, feedback: feedback.map((each) => each.critique) };
      if (!setAnswer(session, version)) {
        yield architectureEvent("self_refine", "empty_answer", { round });
        continue;
      }
      // Replaces the base's answer in the conversation, if the base put one there.
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

/**
 * Creates an architecture that criticises and rewrites the answer of a base architecture (default: `react()`). Use it
 * for texts, where a second version is usually better than the first.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { react, selfRefine } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "writer",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: selfRefine(react(), { maxRounds: 2 }),
 * });
 * ```
 */
export function selfRefine(base?: Architecture, options?: SelfRefineOptions): SelfRefine {
  return new SelfRefine(base, options);
}

/** Describes the earlier versions and their critiques, oldest first. Empty in the first round. */
function earlierRounds(feedback: readonly RoundOfFeedback[]): string {
  return feedback
    .map(
      ({ answer, critique }, index) => `## Version ${index + 1}\n${answer}\n\n## Critique of it\n${critique}`,
    )
    .join("\n\n");
}

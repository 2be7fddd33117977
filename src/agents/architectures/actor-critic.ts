import {
  jsonText,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type HostedAgent,
  type JsonValue,
  type WorkerBrief,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import {
  requireAnswer,
  adoptWorkerResult,
  runWorker,
  keepPartialText,
  type WorkerJob,
} from "../team/run-worker.ts";
import { askForScore, findObjectWith, type ScoredReply } from "./json-parsing.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "../context/prompt-context.ts";
import { architectureEvent } from "../context/role-call.ts";
import {
  requestedOutput,
  spawnOptionsOf,
  TeamMembers,
  workerBrief,
  type Member,
} from "../team/team-members.ts";
import { endOnWorkerInterruption } from "../team/worker-interruption.ts";

/** Options of `actorCritic`. */
export interface ActorCriticOptions {
  /** Agent that writes the answer. */
  readonly actor: HostedAgent | Member;
  /**
   * Agent that scores the answer from 0 to 1 and lists its issues. A critic with a different model than the actor
   * finds other kinds of mistakes.
   */
  readonly critic: HostedAgent | Member;
  /** Maximum number of rounds of one answer and one critique each. Default: 3. */
  readonly maxRounds?: number;
  /** Score from 0 to 1 that approves an answer. Default: 0.9. */
  readonly approvalThreshold?: number;
  /**
   * Whether both agents remember their work in this session, including earlier invocations. With `false`, each
   * round sees only its own prompt and the conversation. Default: `false`.
   */
  readonly remember?: boolean;
}

/** The parsed reply of the critic. */
interface Critique {
  /** Score from 0 to 1. A critique without a readable score counts as 0. */
  readonly score: number;
  readonly issues: readonly string[];
  readonly summary: string;
}

const criticInstructions =
  'You judge an answer to a task; you do not answer the task yourself. Reply with JSON and nothing else: {"score": <0 to 1, how good the answer is>, "issues": ["<what to change>"], "summary": "<one sentence>"}.';

const knownOptions = optionTable({
  actor: is.any,
  critic: is.any,
  maxRounds: is.integer({ from: 1, default: 3 }),
  approvalThreshold: is.number({ from: 0, to: 1, default: 0.9 }),
  remember: is.boolean({ default: false }),
} satisfies OptionKinds<ActorCriticOptions>);

/**
 * One agent answers and another judges the answer, round by round, until the critic approves. If the critic has not
 * approved after the last round, the latest answer is returned, and `metadata.actorCritic.approved` is `false`.
 */
export class ActorCritic implements Architecture {
  readonly name = "actor-critic";
  readonly requiresModel = false;
  readonly #team: TeamMembers;
  readonly #maxRounds: number;
  readonly #threshold: number;
  readonly #remember: boolean;

  constructor(options: ActorCriticOptions) {
    const { actor, critic, maxRounds, approvalThreshold, remember } = knownOptions.read(
      "actorCritic()",
      options,
    );
    this.#team = new TeamMembers("actorCritic", "the team", { actor, critic });
    this.#maxRounds = maxRounds;
    this.#threshold = approvalThreshold;
    this.#remember = remember;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return endOnWorkerInterruption(session, this.#work(session, deps, prompt));
  }

  async *#work(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    let critique: Critique | undefined;
    for (let round = 1; round <= this.#maxRounds; round++) {
      yield architectureEvent("actor_critic", "actor_started", { round });
      const task = critique === undefined ? prompt : revision(prompt, session.output, critique);
      const brief = { ...this.#brief({ ...promptContext, prompt: task }), ...requestedOutput(promptContext) };
      const isRevision = critique !== undefined;
      const result = await this.#spawn(
        deps,
        "actor",
        brief,
        isRevision ? undefined : keepPartialText(session),
      );
      if (!adoptWorkerResult(session, deps, "actor", result, isRevision)) {
        yield architectureEvent("actor_critic", "empty_answer", { round });
        // The previous answer stays, and the critic has already judged it.
        if (isRevision) return;
      }
      yield architectureEvent("actor_critic", "actor_completed", { round, output: session.output });
      yield architectureEvent("actor_critic", "critic_started", { round });
      critique = await this.#judge(deps, promptContext, session.output);
      const { score, issues, summary } = critique;
      const approved = score >= this.#threshold;
      session.metadata["actorCritic"] = { rounds: round, score, approved };
      yield architectureEvent("actor_critic", "critique", { round, score, issues, summary });
      if (approved) {
        yield architectureEvent("actor_critic", "approved", { round, score });
        return;
      }
    }
    yield architectureEvent("actor_critic", "max_rounds_reached", { rounds: this.#maxRounds });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#team.agents;
  }

  async #judge(deps: Dependencies, promptContext: PromptContext, answer: string): Promise<Critique> {
    const ask = async (correction: string): Promise<string> => {
      const task = markdownSections({ Task: promptContext.prompt, Answer: answer, Correction: correction });
      const brief = this.#brief({ ...promptContext, prompt: task }, criticInstructions);
      return requireAnswer(deps, "critic", await this.#spawn(deps, "critic", brief));
    };
    return parseCritique(await askForScore(ask));
  }

  #brief(promptContext: PromptContext, roleInstructions?: string): WorkerBrief {
    const { history, ...brief } = workerBrief(promptContext, roleInstructions);
    return { ...brief, ...(history && !this.#remember && { history }) };
  }

  #spawn(
    deps: Dependencies,
    role: "actor" | "critic",
    input: WorkerBrief,
    onPartialText?: WorkerJob["onPartialText"],
  ): ReturnType<typeof runWorker> {
    const member = this.#team.get(role);
    const options = spawnOptionsOf(member, this.#remember ? role : undefined);
    return runWorker(deps, {
      worker: member.agent,
      input,
      options,
      ...(onPartialText && { onPartialText: onPartialText }),
    });
  }
}

function revision(task: string, answer: string, { issues, summary }: Critique): string {
  const points = [summary, ...issues.map((issue) => `- ${issue}`)].filter((line) => line !== "");
  return markdownSections({
    Task: task,
    "Your answer so far": answer,
    "What a critic says about it": points.join("\n"),
    "What to do now":
      "Write the whole answer again. Change what the critic asks for where the critic is right.",
  });
}

/** Parses a critique that is JSON, or free text with a score. */
function parseCritique({ reply, score }: ScoredReply): Critique {
  const parsed = findObjectWith(reply, ["score", "issues", "summary"]);
  const { issues, summary } = parsed ?? {};
  return {
    score,
    issues: Array.isArray(issues) ? issues.map((issue: JsonValue) => jsonText(issue)) : [],
    summary: typeof summary === "string" ? summary : parsed === undefined ? reply.trim() : "",
  };
}

/**
 * Creates an architecture in which one agent answers and another judges the answer, until the judge approves or the
 * rounds are used up. Use it if the judge should be a separate agent, for example with another model than the
 * author.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { actorCritic } from "reeve/architectures";
 *
 * const author = new Agent({ name: "author", model: "anthropic/claude-sonnet-5" });
 * const editor = new Agent({ name: "editor", model: "anthropic/claude-sonnet-5" });
 * const team = new Agent({ name: "magazine", architecture: actorCritic({ actor: author, critic: editor }) });
 * ```
 */
export function actorCritic(options: ActorCriticOptions): ActorCritic {
  return new ActorCritic(options);
}

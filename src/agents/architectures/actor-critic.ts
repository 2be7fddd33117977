import {
  jsonText,
  type HostedAgent,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonValue,
  type WorkerBrief,
} from "../../kernel/index.ts";
import { requireCount, requireScore } from "./option-checks.ts";
import {
  requireAnswer,
  adoptWorkerResult,
  runWorker,
  keepPartialText,
  type WorkerJob,
} from "./run-worker.ts";
import { findObjectWith, parseScore } from "./json-parsing.ts";
import { loadPromptContext, markdownSections, type PromptContext } from "./prompt-context.ts";
import { architectureEvent } from "./role-call.ts";
import { requestedOutput, spawnOptionsOf, TeamMembers, workerBrief, type Member } from "./team-members.ts";
import { endOnWorkerInterruption } from "./worker-interruption.ts";

export interface ActorCriticOptions {
  /** Does the work. */
  readonly actor: HostedAgent | Member;
  /** Judges it, from 0 to 1, and says what is wrong. Another model than the actor's sees other mistakes. */
  readonly critic: HostedAgent | Member;
  /** Of a piece of work and a critique each. 3 unless told. */
  readonly maxRounds?: number;
  /** From this score on the work is done. 0.9 unless told. */
  readonly approvalThreshold?: number;
  /** Both remember what they did in this session, in earlier invocations too. Not unless told: then each round knows what it is told. */
  readonly remember?: boolean;
}

interface Critique {
  /** Of a critique that names none: 0. */
  readonly score: number;
  readonly issues: readonly string[];
  readonly summary: string;
}

const criticDuty =
  'You judge an answer to a task; you do not answer it yourself. Reply with JSON and nothing else: {"score": <0 to 1, how good it is>, "issues": ["<what to change>"], "summary": "<one sentence>"}.';

/**
 * One agent works, another judges, again and again until the work is good enough; what there is after the last round is given as it is,
 * and `metadata` says that it was not approved.
 */
export class ActorCritic implements Architecture {
  readonly name = "actor-critic";
  readonly requiresModel = false;
  readonly #team: TeamMembers;
  readonly #maxRounds: number;
  readonly #threshold: number;
  readonly #remember: boolean;

  constructor(options: ActorCriticOptions) {
    const { actor, critic, maxRounds = 3, approvalThreshold = 0.9, remember = false } = options;
    this.#team = new TeamMembers("actorCritic", "the team", { actor, critic });
    this.#maxRounds = requireCount("actorCritic", "maxRounds", maxRounds);
    this.#threshold = requireScore("actorCritic", "approvalThreshold", approvalThreshold);
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
      const result = await this.#hire(
        deps,
        "actor",
        brief,
        isRevision ? undefined : keepPartialText(session),
      );
      if (!adoptWorkerResult(session, deps, "actor", result, isRevision)) {
        yield architectureEvent("actor_critic", "empty_answer", { round });
        // The work is what it was, and was judged.
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
    const task = markdownSections({ Task: promptContext.prompt, Answer: answer });
    const brief = this.#brief({ ...promptContext, prompt: task }, criticDuty);
    return parseCritique(requireAnswer(deps, "critic", await this.#hire(deps, "critic", brief)));
  }

  #brief(promptContext: PromptContext, duty?: string): WorkerBrief {
    const { history, ...brief } = workerBrief(promptContext, duty);
    return { ...brief, ...(history && !this.#remember && { history }) };
  }

  #hire(
    deps: Dependencies,
    role: "actor" | "critic",
    input: WorkerBrief,
    heard?: WorkerJob["onPartialText"],
  ): ReturnType<typeof runWorker> {
    const member = this.#team.get(role);
    const options = spawnOptionsOf(member, this.#remember ? role : undefined);
    return runWorker(deps, { worker: member.agent, input, options, ...(heard && { onPartialText: heard }) });
  }
}

function revision(task: string, answer: string, { issues, summary }: Critique): string {
  const points = [summary, ...issues.map((issue) => `- ${issue}`)].filter((line) => line !== "");
  return markdownSections({
    Task: task,
    "Your answer so far": answer,
    "What a critic says of it": points.join("\n"),
    "What to do now": "Give the whole answer anew, with what the critic asks for where that is right.",
  });
}

/** JSON, or a score and words. */
function parseCritique(said: string): Critique {
  const read = findObjectWith(said, ["score", "issues", "summary"]);
  const { issues, summary } = read ?? {};
  return {
    score: parseScore(said) ?? 0,
    issues: Array.isArray(issues) ? issues.map((issue: JsonValue) => jsonText(issue)) : [],
    summary: typeof summary === "string" ? summary : read === undefined ? said.trim() : "",
  };
}

/** One agent that works and one that judges, until the work is good enough. */
export function actorCritic(options: ActorCriticOptions): ActorCritic {
  return new ActorCritic(options);
}

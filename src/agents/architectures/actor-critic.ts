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
import { countOf, scoreOf } from "./bound.ts";
import { answerOf, endWith, hire, saidFor, type Job } from "./hire.ts";
import { objectIn, scoreIn } from "./json-answer.ts";
import { questionOf, titled, type Question } from "./question.ts";
import { note } from "./role-call.ts";
import { formWanted, hiring, Roster, wholeQuestion, type Member } from "./roster.ts";
import { boundByWorkers } from "./worker-bound.ts";

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

const duty =
  'You judge an answer to a task; you do not answer it yourself. Reply with JSON and nothing else: {"score": <0 to 1, how good it is>, "issues": ["<what to change>"], "summary": "<one sentence>"}.';

/**
 * One agent works, another judges, again and again until the work is good enough; what there is after the last round is given as it is,
 * and `metadata` says that it was not approved.
 */
export class ActorCritic implements Architecture {
  readonly name = "actor-critic";
  readonly requiresModel = false;
  readonly #team: Roster;
  readonly #maxRounds: number;
  readonly #threshold: number;
  readonly #remember: boolean;

  constructor(options: ActorCriticOptions) {
    const { actor, critic, maxRounds = 3, approvalThreshold = 0.9, remember = false } = options;
    this.#team = new Roster("actorCritic", "the team", { actor, critic });
    this.#maxRounds = countOf("actorCritic", "maxRounds", maxRounds);
    this.#threshold = scoreOf("actorCritic", "approvalThreshold", approvalThreshold);
    this.#remember = remember;
  }

  run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    return boundByWorkers(session, this.#go(session, deps, prompt));
  }

  async *#go(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const question = await questionOf(session, deps, prompt);
    let critique: Critique | undefined;
    for (let round = 1; round <= this.#maxRounds; round++) {
      yield note("actor_critic", "actor_started", { round });
      const task = critique === undefined ? prompt : revision(prompt, session.output, critique);
      const brief = { ...this.#brief({ ...question, prompt: task }), ...formWanted(question) };
      const isRevision = critique !== undefined;
      const end = await this.#hire(deps, "actor", brief, isRevision ? undefined : saidFor(session));
      if (!endWith(session, deps, "actor", end, isRevision)) {
        yield note("actor_critic", "empty_answer", { round });
        // The work is what it was, and was judged.
        if (isRevision) return;
      }
      yield note("actor_critic", "actor_completed", { round, output: session.output });
      yield note("actor_critic", "critic_started", { round });
      critique = await this.#judge(deps, question, session.output);
      const { score, issues, summary } = critique;
      const approved = score >= this.#threshold;
      session.metadata["actorCritic"] = { rounds: round, score, approved };
      yield note("actor_critic", "critique", { round, score, issues, summary });
      if (approved) {
        yield note("actor_critic", "approved", { round, score });
        return;
      }
    }
    yield note("actor_critic", "max_rounds_reached", { rounds: this.#maxRounds });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.#team.agents;
  }

  async #judge(deps: Dependencies, question: Question, answer: string): Promise<Critique> {
    const task = titled({ Task: question.prompt, Answer: answer });
    const brief = this.#brief({ ...question, prompt: task }, duty);
    return critiqueIn(answerOf(deps, "critic", await this.#hire(deps, "critic", brief)));
  }

  #brief(question: Question, told?: string): WorkerBrief {
    const { history, ...brief } = wholeQuestion(question, told);
    return { ...brief, ...(history && !this.#remember && { history }) };
  }

  #hire(
    deps: Dependencies,
    role: "actor" | "critic",
    input: WorkerBrief,
    heard?: Job["heard"],
  ): ReturnType<typeof hire> {
    const member = this.#team.get(role);
    const options = hiring(member, this.#remember ? role : undefined);
    return hire(deps, { worker: member.agent, input, options, ...(heard && { heard }) });
  }
}

function revision(task: string, answer: string, { issues, summary }: Critique): string {
  const points = [summary, ...issues.map((issue) => `- ${issue}`)].filter((line) => line !== "");
  return titled({
    Task: task,
    "Your answer so far": answer,
    "What a critic says of it": points.join("\n"),
    "What to do now": "Give the whole answer anew, with what the critic asks for where that is right.",
  });
}

/** JSON, or a score and words. */
function critiqueIn(said: string): Critique {
  const read = objectIn(said, ["score", "issues", "summary"]);
  const { issues, summary } = read ?? {};
  return {
    score: scoreIn(said) ?? 0,
    issues: Array.isArray(issues) ? issues.map((issue: JsonValue) => jsonText(issue)) : [],
    summary: typeof summary === "string" ? summary : read === undefined ? said.trim() : "",
  };
}

/** One agent that works and one that judges, until the work is good enough. */
export function actorCritic(options: ActorCriticOptions): ActorCritic {
  return new ActorCritic(options);
}

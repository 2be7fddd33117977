import {
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type Memory,
  type MemoryScope,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { checkArchitecture } from "../base/part-check.ts";
import { runInner } from "./inner-run.ts";
import {
  evaluateAttempt,
  reflectOnAttempt,
  type AttemptEvaluator,
  type AttemptReflector,
} from "./attempt-review.ts";
import { loadPromptContext } from "../context/prompt-context.ts";
import { react } from "./react.ts";
import { architectureEvent } from "../context/role-call.ts";
import { isBlank } from "../base/answer-text.ts";
import { isBetter, Attempts, type Attempt } from "./attempts.ts";

/** Options of `reflexion`. */
export interface ReflexionOptions {
  /** Maximum number of attempts. Default: 3. */
  readonly maxAttempts?: number;
  /** Score from 0 to 1 at which an attempt is accepted. Default: 0.8. */
  readonly threshold?: number;
  /** Maximum number of lessons that an attempt sees; the latest are shown. Default: 5. */
  readonly maxLessons?: number;
  /** Maximum number of turns of one attempt. Default: the agent's `maxTurns`. */
  readonly maxTurnsPerAttempt?: number;
  /** Function that scores an attempt. If absent, the model of the role `evaluator` scores it. */
  readonly evaluator?: AttemptEvaluator;
  /** Function that writes the lesson of an attempt. If absent, the model of the role `reflector` writes it. */
  readonly reflector?: AttemptReflector;
}

const knownOptions = optionTable({
  maxAttempts: is.integer({ from: 1, default: 3 }),
  threshold: is.number({ from: 0, to: 1, default: 0.8 }),
  maxLessons: is.integer({ from: 1, default: 5 }),
  maxTurnsPerAttempt: is.integer({ from: 1 }),
  evaluator: is.callback({ hint: "to use a model, set models.evaluator of the agent" }),
  reflector: is.callback({ hint: "to use a model, set models.reflector of the agent" }),
} satisfies OptionKinds<ReflexionOptions>);

/**
 * Makes an attempt, has it scored, derives a lesson if the score is too low, and tries again from the start with
 * the lessons. The evaluator, which scores, and the reflector, which writes the lesson, see the actions and
 * observations of the attempt, not only its answer. Each of them may be a function. The best attempt is the answer.
 * If the agent has a memory, lessons are stored for later tasks of the same user.
 *
 * Roles: `evaluator` and `reflector`, unless they are functions, and the roles of the base.
 */
export class Reflexion implements Architecture {
  readonly name = "reflexion";
  readonly base: Architecture;
  readonly #maxAttempts: number;
  readonly #threshold: number;
  readonly #maxLessons: number;
  readonly #maxTurns: number | undefined;
  readonly #evaluator: AttemptEvaluator | undefined;
  readonly #reflector: AttemptReflector | undefined;

  constructor(base: Architecture = react(), options: ReflexionOptions = {}) {
    const { maxAttempts, threshold, maxLessons, maxTurnsPerAttempt } = knownOptions.read(
      "reflexion()",
      options,
    );
    this.base = checkArchitecture(base, "base of reflexion()");
    this.#maxAttempts = maxAttempts;
    this.#threshold = threshold;
    this.#maxLessons = maxLessons;
    this.#maxTurns = maxTurnsPerAttempt;
    this.#evaluator = options.evaluator;
    this.#reflector = options.reflector;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const attempts = new Attempts(promptContext, session.messages);
    const from = session.messages.length;
    const review = {
      session,
      deps,
      promptContext,
      evaluator: this.#evaluator,
      reflector: this.#reflector,
    };
    const lessons: string[] = [];
    const scores: number[] = [];
    let best: Attempt | undefined;
    if (deps.memory !== null) {
      const recall = await recallLessons(deps, deps.memory, prompt, this.#maxLessons);
      yield architectureEvent(
        "reflexion",
        "problem" in recall ? "memory_failed" : "lessons_recalled",
        recall,
      );
      if ("lessons" in recall) lessons.push(...recall.lessons);
    }
    for (let attempt = 1; attempt <= this.#maxAttempts; attempt++) {
      deps.ctx.check();
      yield architectureEvent("reflexion", "attempt_started", { attempt });
      const recentLessons = lessons.slice(-this.#maxLessons);
      const inner = deps.freshSession(`attempt_${attempt}`, withLessons(session.instructions, recentLessons));
      const current = attempts.begin(inner);
      yield* this.#try(session, deps, { attempts, current, best });
      // An attempt that ends with a tool call, such as a forward or a handoff, has a result without text of its own.
      if (isBlank(inner.output) && inner.messages.at(-1)?.role !== "tool")
        yield architectureEvent("reflexion", "empty_answer", { attempt });
      const { task } = attempts;
      // B5: keeps the best attempt so far as the output, in case the budget runs out during the evaluation.
      attempts.adopt(session, bestSoFar(best, current));
      const reviewed = { attempt, task, inner, from };
      const judgement = await evaluateAttempt(review, reviewed);
      const score = (current.score = judgement.score);
      scores.push(score);
      if (best === undefined || isBetter(current, best)) best = current;
      attempts.adopt(session, best);
      session.metadata["reflexion"] = { scores: [...scores], lessons: [...lessons] };
      yield architectureEvent("reflexion", "evaluated", { attempt, score, said: judgement.reason });
      if (best.score >= this.#threshold) {
        // An attempt that ended early but has a sufficient score counts as a complete answer.
        session.interrupted = false;
        session.interruptionReason = null;
        yield architectureEvent("reflexion", "threshold_met", { attempt, score });
        return;
      }
      if (attempt === this.#maxAttempts) break;
      const lesson = (await reflectOnAttempt(review, reviewed, judgement)).trim();
      if (lesson === "") continue;
      lessons.push(lesson);
      session.metadata["reflexion"] = { scores: [...scores], lessons: [...lessons] };
      yield architectureEvent("reflexion", "lesson_produced", { attempt, lesson });
      if (deps.memory === null) continue;
      const stored = await storeLesson(deps, deps.memory, task, lesson);
      yield architectureEvent(
        "reflexion",
        "problem" in stored ? "memory_failed" : "lesson_persisted",
        stored,
      );
    }
    yield architectureEvent("reflexion", "max_attempts_reached", {
      attempts: this.#maxAttempts,
      score: best?.score ?? 0,
    });
  }

  declaredWorkers(): ReturnType<Architecture["declaredWorkers"]> {
    return this.base.declaredWorkers();
  }

  /**
   * Runs one attempt. S1: if the attempt is stopped, the session is closed with its messages, unless an earlier attempt
   * has an answer.
   */
  async *#try(
    session: AgentSession,
    deps: Dependencies,
    { attempts, current, best }: { attempts: Attempts; current: Attempt; best: Attempt | undefined },
  ): AsyncGenerator<EmittableEvent, void> {
    const limited = deps.withMaxTurns(this.#maxTurns ?? deps.maxTurns);
    let isDone = false;
    try {
      const { inner } = current;
      yield* runInner(session, { base: this.base, inner, deps: limited, prompt: attempts.task });
      isDone = true;
    } finally {
      attempts.end(current);
      if (!isDone) attempts.adopt(session, bestSoFar(best, current));
    }
  }
}

/**
 * Creates an architecture that repeats a base architecture (default: `react()`) with lessons from failed attempts
 * until an evaluator accepts one. Use it if a first attempt often fails and a model can say why.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { planAndExecute, reflexion } from "reeve/architectures";
 *
 * const agent = new Agent({
 *   name: "solver",
 *   model: "anthropic/claude-sonnet-5",
 *   architecture: reflexion(planAndExecute(), { maxAttempts: 2, threshold: 0.9 }),
 * });
 * ```
 */
export function reflexion(base?: Architecture, options?: ReflexionOptions): Reflexion {
  return new Reflexion(base, options);
}

/**
 * Returns the attempt to keep until the current one is scored. It is the best earlier attempt, or the current one
 * if the best earlier attempt has no text.
 */
function bestSoFar(best: Attempt | undefined, current: Attempt): Attempt {
  return best === undefined || isBlank(best.inner.output) ? current : best;
}

function withLessons(instructions: string, lessons: readonly string[]): string {
  if (lessons.length === 0) return instructions;
  const list = `Lessons from earlier attempts at tasks like this:\n${lessons.map((each) => `- ${each}`).join("\n")}`;
  return instructions === "" ? list : `${instructions}\n\n${list}`;
}

/** Result of reading from or writing to the memory. A failure is reported as an event and does not fail the run. */
type MemoryUse<Value extends JsonObject> = Value | { readonly problem: string };

const lessonKind = "lesson";

/** The memory of the run's user. */
function scopeOf({ facts: { tenantId, userId } }: Dependencies["ctx"]): MemoryScope {
  return { tenantId, userId };
}

/**
 * Recalls lessons for a task. It reads five times as many episodes as it needs and filters them, because the memory
 * may also contain other episodes of the user.
 */
function recallLessons(
  { ctx }: Dependencies,
  memory: Memory,
  task: string,
  limit: number,
): Promise<MemoryUse<{ readonly lessons: readonly string[] }>> {
  return ctx.step("recall lessons", () =>
    tryMemory(async () => {
      const found = await memory.recall(scopeOf(ctx), { text: task, limit: limit * 5 });
      const lessons = found.episodes.flatMap(({ metadata }) =>
        metadata?.["kind"] === lessonKind && typeof metadata["lesson"] === "string"
          ? [metadata["lesson"]]
          : [],
      );
      return { lessons: lessons.slice(0, limit) };
    }),
  );
}

/**
 * Stores a lesson together with its task, so that a search for a similar task finds it. J6: the id of the lesson is
 * the idempotency key, so that a repeated step stores it only once.
 */
function storeLesson(
  { ctx }: Dependencies,
  memory: Memory,
  task: string,
  lesson: string,
): Promise<MemoryUse<{ readonly id: string; readonly lesson: string }>> {
  return ctx.step("keep lesson", ({ idempotencyKey }) =>
    tryMemory(async () => {
      const text = `Lesson: ${lesson}\nTask: ${task}`;
      const metadata = { kind: lessonKind, lesson };
      const write = { type: "episode", text, metadata, id: idempotencyKey } as const;
      return { id: await memory.remember(scopeOf(ctx), write), lesson };
    }),
  );
}

async function tryMemory<Value extends JsonObject>(work: () => Promise<Value>): Promise<MemoryUse<Value>> {
  try {
    return await work();
  } catch (error) {
    return { problem: Fault.from(error).message };
  }
}

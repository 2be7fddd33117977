import {
  Fault,
  type AgentSession,
  type Architecture,
  type Dependencies,
  type EmittableEvent,
  type JsonObject,
  type Memory,
} from "../../kernel/index.ts";
import { requireCount, requireScore } from "./option-checks.ts";
import { runInner } from "./inner-run.ts";
import { parseScore } from "./json-parsing.ts";
import {
  askSupportingRole,
  loadPromptContext,
  markdownSections,
  type PromptContext,
} from "./prompt-context.ts";
import { react } from "./react.ts";
import { architectureEvent } from "./role-call.ts";
import { isBlank } from "./answer-text.ts";
import { isBetter, Attempts, type Attempt } from "./attempts.ts";

export interface ReflexionOptions {
  /** 3 unless told. */
  readonly maxAttempts?: number;
  /** An attempt that scores this much will do. 0.8 unless told. */
  readonly threshold?: number;
  /** Shown to an attempt: the latest. 5 unless told. */
  readonly maxLessons?: number;
  /** The agent's `maxTurns` unless told. */
  readonly maxTurnsPerAttempt?: number;
}

/**
 * Tries, has the attempt scored, draws a lesson from one that will not do and tries again from the start, knowing it. The best attempt
 * is the answer. With a memory the lessons are kept for the user's later tasks. Roles: `evaluator`, `reflector`, and those of the base.
 */
export class Reflexion implements Architecture {
  readonly name = "reflexion";
  readonly base: Architecture;
  readonly #maxAttempts: number;
  readonly #threshold: number;
  readonly #maxLessons: number;
  readonly #maxTurns: number | undefined;

  constructor(base: Architecture = react(), options: ReflexionOptions = {}) {
    const { maxAttempts = 3, threshold = 0.8, maxLessons = 5, maxTurnsPerAttempt } = options;
    this.base = base;
    this.#maxAttempts = requireCount("reflexion", "maxAttempts", maxAttempts);
    this.#threshold = requireScore("reflexion", "threshold", threshold);
    this.#maxLessons = requireCount("reflexion", "maxLessons", maxLessons);
    if (maxTurnsPerAttempt !== undefined) requireCount("reflexion", "maxTurnsPerAttempt", maxTurnsPerAttempt);
    this.#maxTurns = maxTurnsPerAttempt;
  }

  async *run(session: AgentSession, deps: Dependencies, prompt: string): AsyncIterable<EmittableEvent> {
    const promptContext = await loadPromptContext(session, deps, prompt);
    const attempts = new Attempts(promptContext, session.messages);
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
      // One that ends on a call, such as to forward or hand over, gives what that gives.
      if (isBlank(inner.output) && inner.messages.at(-1)?.role !== "tool")
        yield architectureEvent("reflexion", "empty_answer", { attempt });
      const { task } = attempts;
      // B5: better than nothing, should the money end at the evaluator.
      attempts.adopt(session, bestSoFar(best, current));
      const evaluation = await evaluate(session, deps, promptContext, task, inner);
      const score = (current.score = parseScore(evaluation) ?? 0);
      scores.push(score);
      if (best === undefined || isBetter(current, best)) best = current;
      attempts.adopt(session, best);
      session.metadata["reflexion"] = { scores: [...scores], lessons: [...lessons] };
      yield architectureEvent("reflexion", "evaluated", { attempt, score, said: evaluation });
      if (best.score >= this.#threshold) {
        // One that ended early and is good enough all the same is an answer.
        session.interrupted = false;
        session.interruptionReason = null;
        yield architectureEvent("reflexion", "threshold_met", { attempt, score });
        return;
      }
      if (attempt === this.#maxAttempts) break;
      const lesson = (await reflect(session, deps, promptContext, { task, inner, evaluation })).trim();
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

  /** S1: what is stopped is closed with what the attempt had said, unless there was an answer before it. */
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

/** Attempts, each knowing the lessons of those before: `reflexion(planAndExecute())`. */
export function reflexion(base?: Architecture, options?: ReflexionOptions): Reflexion {
  return new Reflexion(base, options);
}

/** Before an attempt is judged: the best of those that were, if that says anything. */
function bestSoFar(best: Attempt | undefined, current: Attempt): Attempt {
  return best === undefined || isBlank(best.inner.output) ? current : best;
}

function withLessons(instructions: string, lessons: readonly string[]): string {
  if (lessons.length === 0) return instructions;
  const list = `Lessons from earlier attempts at tasks like this:\n${lessons.map((each) => `- ${each}`).join("\n")}`;
  return instructions === "" ? list : `${instructions}\n\n${list}`;
}

function evaluate(
  session: AgentSession,
  deps: Dependencies,
  promptContext: PromptContext,
  task: string,
  { output, interruptionReason }: AgentSession,
): Promise<string> {
  return askSupportingRole(session, deps, promptContext, {
    role: "evaluator",
    duty: 'You judge how well an answer does its task: right, complete, as asked. Answer with JSON and nothing else: {"score": a number from 0 (useless) to 1 (nothing to add), "reason": what is wrong or missing}.',
    prompt: markdownSections({
      Task: task,
      Answer: output || "(none)",
      "It ended early": interruptionReason ?? "",
    }),
  });
}

function reflect(
  session: AgentSession,
  deps: Dependencies,
  promptContext: PromptContext,
  {
    task,
    inner,
    evaluation,
  }: { readonly task: string; readonly inner: AgentSession; readonly evaluation: string },
): Promise<string> {
  return askSupportingRole(session, deps, promptContext, {
    role: "reflector",
    duty: "An attempt at a task did not do. Say in one sentence what to do differently next time: specific, and useful without having seen this attempt.",
    prompt: markdownSections({
      Task: task,
      Answer: inner.output || "(none)",
      "It ended early": inner.interruptionReason ?? "",
      Judgement: evaluation,
    }),
  });
}

/** What became of a use of the memory. One that fails costs lessons, not the run. */
type MemoryUse<Value extends JsonObject> = Value | { readonly problem: string };

const lessonKind = "lesson";

/** Other things may be remembered of the user: among as many more, those that are lessons. */
function recallLessons(
  { ctx }: Dependencies,
  memory: Memory,
  task: string,
  limit: number,
): Promise<MemoryUse<{ readonly lessons: readonly string[] }>> {
  return ctx.step("recall lessons", () =>
    tryMemory(async () => {
      const found = await memory.recall({ userId: ctx.facts.userId }, { text: task, limit: limit * 5 });
      const lessons = found.episodes.flatMap(({ metadata }) =>
        metadata?.["kind"] === lessonKind && typeof metadata["lesson"] === "string"
          ? [metadata["lesson"]]
          : [],
      );
      return { lessons: lessons.slice(0, limit) };
    }),
  );
}

/** Found again by the words of its task. J6: kept once, however often the step is tried. */
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
      return { id: await memory.remember({ userId: ctx.facts.userId }, write), lesson };
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

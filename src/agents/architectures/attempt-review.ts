import {
  describeValue,
  Fault,
  jsonText,
  messageText,
  toolCallsOf,
  type AgentSession,
  type ChatMessage,
  type Dependencies,
  type JsonObject,
  type ToolOutput,
} from "../../kernel/index.ts";
import { askForScore } from "./json-parsing.ts";
import { askSupportingRole, markdownSections, type PromptContext } from "../context/prompt-context.ts";

/** An attempt of `reflexion`, as its evaluator and reflector functions see it. */
export interface ReflexionAttempt {
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** The task: the prompt and everything that the user has added later. */
  readonly task: string;
  /** The answer of the attempt; empty if it has none. */
  readonly output: string;
  /** Why the attempt ended early; `null` if it did not. */
  readonly interruptionReason: string | null;
  /** The attempt's part of the conversation: the task, the tool calls and their results, and the answer. */
  readonly messages: readonly ChatMessage[];
  /** Metadata of the base architecture, such as its plan. */
  readonly metadata: JsonObject;
}

/** A score from 0 to 1, with a reason for the reflector. */
export interface AttemptJudgement {
  readonly score: number;
  readonly reason?: string;
}

/**
 * Scores an attempt from 0 to 1, for example by running tests. It is called once per attempt and journaled; a replay
 * uses the recorded score.
 */
export type AttemptEvaluator = (
  attempt: ReflexionAttempt,
) => number | AttemptJudgement | Promise<number | AttemptJudgement>;

/**
 * Writes the lesson of an attempt that was not accepted. An empty text means that there is no lesson. It is called
 * once per attempt and journaled.
 */
export type AttemptReflector = (
  attempt: ReflexionAttempt & Required<AttemptJudgement>,
) => string | Promise<string>;

/** The functions that review the attempts of one invocation. */
export interface ReviewParts {
  readonly session: AgentSession;
  readonly deps: Dependencies;
  readonly promptContext: PromptContext;
  /** Scores an attempt. If absent, the model of the role `evaluator` scores it. */
  readonly evaluator: AttemptEvaluator | undefined;
  /** Writes the lesson of an attempt. If absent, the model of the role `reflector` writes it. */
  readonly reflector: AttemptReflector | undefined;
}

/** An attempt to review. `from` is the index of its prompt in the session in which it ran. */
export interface ReviewedAttempt {
  readonly attempt: number;
  readonly task: string;
  readonly inner: AgentSession;
  readonly from: number;
}

/** Scores an attempt. */
export async function evaluateAttempt(
  { session, deps, promptContext, evaluator }: ReviewParts,
  reviewed: ReviewedAttempt,
): Promise<Required<AttemptJudgement>> {
  if (evaluator !== undefined)
    return deps.ctx.step("evaluate", async () => judgement(await evaluator(publicAttempt(reviewed))), {
      input: reviewed.attempt,
    });
  const { reply: reason, score } = await askForScore((correction) =>
    askSupportingRole(session, deps, promptContext, {
      role: "evaluator",
      roleInstructions:
        'You judge whether an answer is correct, complete and follows the task. If the actions and observations that led to it are shown, check that they support it. Reply with JSON and nothing else: {"score": a number from 0 (useless) to 1 (nothing to improve), "reason": what is wrong or missing}.',
      prompt: markdownSections({ ...sections(reviewed), Correction: correction }),
    }),
  );
  return { score, reason };
}

/** Writes the lesson of an attempt that was not accepted. */
export async function reflectOnAttempt(
  { session, deps, promptContext, reflector }: ReviewParts,
  reviewed: ReviewedAttempt,
  { score, reason }: Required<AttemptJudgement>,
): Promise<string> {
  if (reflector !== undefined)
    return deps.ctx.step(
      "reflect",
      async () => {
        const lesson: unknown = await reflector({ ...publicAttempt(reviewed), score, reason });
        if (typeof lesson === "string") return lesson;
        throw invalid("reflector", lesson, "a text");
      },
      { input: reviewed.attempt },
    );
  return askSupportingRole(session, deps, promptContext, {
    role: "reflector",
    roleInstructions:
      "An attempt at a task was not good enough. Find the action or the claim where it went wrong, and say in one sentence what to do differently next time. Be specific, and write for a reader who has not seen this attempt.",
    prompt: markdownSections({ ...sections(reviewed), Judgement: reason }),
  });
}

function sections({ task, inner, from }: ReviewedAttempt): Readonly<Record<string, string>> {
  return {
    Task: task,
    "Actions and observations": describeTrajectory(inner, from),
    Answer: inner.output || "(none)",
    "Ended early": inner.interruptionReason ?? "",
  };
}

function publicAttempt({ attempt, task, inner, from }: ReviewedAttempt): ReflexionAttempt {
  const { output, interruptionReason, messages, metadata } = inner;
  return {
    attempt,
    task,
    output,
    interruptionReason,
    messages: messages.slice(from),
    metadata: { ...metadata },
  };
}

/**
 * Checks the value that an evaluator function returned. A score outside 0 to 1 throws, because its scale is
 * unknown.
 */
function judgement(returned: unknown): { readonly score: number; readonly reason: string } {
  const { score, reason = "" } =
    typeof returned === "object" && returned !== null
      ? (returned as Partial<AttemptJudgement>)
      : { score: returned as number };
  if (typeof score === "number" && score >= 0 && score <= 1 && typeof reason === "string")
    return { score, reason: reason === "" ? `score ${score}` : reason };
  throw invalid("evaluator", returned, "a score from 0 to 1, or { score, reason }");
}

function invalid(option: string, returned: unknown, expected: string): Fault {
  return new Fault(
    "invalid_argument",
    `the ${option} of reflexion returned ${describeValue(returned)}: expected ${expected}`,
  );
}

/** Maximum number of characters of one action or observation in the description of an attempt. */
const maxEntryCharacters = 2_000;

/** Maximum number of characters of the description of an attempt. The latest entries are kept. */
const maxCharacters = 20_000;

/**
 * Describes what an attempt did: its thoughts, actions (tool calls) and observations (their results), in order, and the
 * metadata in which architectures such as plan-and-execute and ReWOO keep their work. `from` is the index of the
 * attempt's prompt. Empty if the attempt only answered. Long entries are shortened, and the earliest are left out.
 */
function describeTrajectory({ messages, metadata }: AgentSession, from: number): string {
  const entries = messages.slice(from + 1).flatMap(describeMessage);
  if (Object.keys(metadata).length > 0) entries.push(`Work: ${jsonText(metadata)}`);
  return latestThatFit(entries.map(shorten));
}

function describeMessage(message: ChatMessage): readonly string[] {
  const text = messageText(message);
  if (message.role === "user") return [`User: ${text}`];
  if (message.role === "tool")
    return message.content.map(
      ({ toolName, output, isError }) =>
        `Observation${isError ? " (error)" : ""} of ${toolName}: ${outputText(output)}`,
    );
  if (message.role === "system") return [];
  const calls = toolCallsOf(message).map(({ toolName, input }) => `Action: ${toolName} ${jsonText(input)}`);
  // A message without calls is the answer, which the prompt shows separately.
  if (calls.length === 0) return [];
  return text === "" ? calls : [`Thought: ${text}`, ...calls];
}

function outputText(output: ToolOutput): string {
  switch (output.type) {
    case "text":
      return output.text;
    case "json":
      return jsonText(output.value);
    case "content":
      return output.parts.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join(" ");
  }
}

function shorten(entry: string): string {
  if (entry.length <= maxEntryCharacters) return entry;
  return `${entry.slice(0, maxEntryCharacters)} [${entry.length - maxEntryCharacters} more characters]`;
}

function latestThatFit(entries: readonly string[]): string {
  let length = 0;
  let first = entries.length;
  while (first > 0 && length + (entries[first - 1] ?? "").length <= maxCharacters)
    length += (entries[--first] ?? "").length + 1;
  const kept = entries.slice(first);
  return (first === 0 ? kept : [`[${first} earlier entries left out]`, ...kept]).join("\n");
}

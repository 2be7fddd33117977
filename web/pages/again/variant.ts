import type { Event, JsonValue, TaskId } from "../../../src/kernel/index.ts";
import type { StepView } from "../../../src/surfaces/view/step-log.ts";
import { plain } from "../../base/format.ts";

/** The letters of the columns. A is what was recorded. */
export const letters = ["A", "B", "C", "D"] as const;
export const mostVariants = letters.length - 1;

/** A recorded result of a tool call that a variant may replace. */
export interface KnownResult {
  readonly callId: string;
  readonly toolName: string;
  readonly text: string;
  readonly isError: boolean;
}

/** The data that were sent with the call from which variants start, as far as they are recorded. */
export interface Origin {
  readonly runId: string;
  readonly taskId: TaskId;
  /** Seq of the `message_start` of the call. */
  readonly at: number;
  /** Number of the call among those of its agent, from 1. */
  readonly turn: number;
  readonly agentId: string;
  readonly model: string | null;
  /** `null` if the instructions were erased or never recorded. */
  readonly instructions: string | null;
  readonly tools: readonly string[];
  readonly results: readonly KnownResult[];
  /** The input of the run, as a text. */
  readonly message: string;
  readonly input: JsonValue;
}

interface ToolPart {
  readonly type?: string;
  readonly callId?: string;
  readonly toolName?: string;
  readonly isError?: boolean;
  readonly output?: { readonly type?: string; readonly text?: string; readonly value?: JsonValue };
}

/**
 * Returns the tool results at the end of a call's messages. A variant may replace them, because no later call has
 * seen them.
 */
export function lastResults(
  messages: readonly { readonly role: string; readonly content: unknown }[],
): readonly KnownResult[] {
  const last = messages.findLast(({ role }) => role !== "user");
  if (last?.role !== "tool" || !Array.isArray(last.content)) return [];
  return (last.content as readonly ToolPart[]).flatMap(({ callId, toolName = "", output, isError = false }) =>
    callId === undefined ? [] : [{ callId, toolName, text: outputText(output), isError }],
  );
}

function outputText(output: ToolPart["output"]): string {
  if (output === undefined) return "";
  if (output.type === "text") return output.text ?? "";
  return output.type === "json" ? JSON.stringify(output.value, null, 2) : plain(output);
}

/**
 * Converts an edited result for the server: to JSON if the recorded result was JSON and the text still is,
 * otherwise to a text.
 */
export function editedOutput(before: string, after: string): JsonValue {
  try {
    const [old, value] = [JSON.parse(before) as JsonValue, JSON.parse(after) as JsonValue];
    return typeof old === "object" && old !== null ? value : after;
  } catch {
    return after;
  }
}

type ForkData = Event<"run_fork">["data"];

/** One thing that a variant changes: what it was, and what it is. */
export interface ShownChange {
  readonly what: "Message" | "Instructions" | "Model" | "Tools" | "Result";
  /** The tool whose result is edited. */
  readonly about: string;
  readonly before: string;
  readonly after: string;
}

/** What is changed, for the head of its column. `recorded` is what the call was sent. */
export function changesOf(
  data: ForkData,
  recorded: {
    readonly model: string | null;
    readonly instructions: string;
    readonly tools: readonly string[];
    readonly results: readonly KnownResult[];
    readonly message: string;
  },
): readonly ShownChange[] {
  const { input, replacesInput, instructions, model, tools, toolResults = [] } = data;
  const change = (what: ShownChange["what"], before: string, after: string, about = ""): ShownChange => ({
    what,
    about,
    before,
    after,
  });
  return [
    ...(input === undefined
      ? []
      : [change("Message", replacesInput === true ? recorded.message : "", inputWords(input))]),
    ...(instructions === undefined ? [] : [change("Instructions", recorded.instructions, instructions)]),
    ...(model === undefined
      ? []
      : [change("Model", recorded.model ?? "", `${model.provider}/${model.modelId}`)]),
    ...(tools === undefined ? [] : [change("Tools", recorded.tools.join("\n"), tools.join("\n"))]),
    ...toolResults.map(({ callId, toolName, output }) =>
      change(
        "Result",
        recorded.results.find((each) => each.callId === callId)?.text ?? "",
        outputText(output),
        toolName,
      ),
    ),
  ];
}

/** The text of an input: that of a value of a schema, of a request, or of parts. */
export function inputWords(input: JsonValue): string {
  if (typeof input === "string") return input;
  if (Array.isArray(input))
    return (input as readonly JsonValue[])
      .map((part) => {
        const text = (part as { readonly text?: unknown } | null)?.text;
        return typeof text === "string" ? text : "[file]";
      })
      .join("\n");
  const { value, prompt } = (input ?? {}) as { readonly value?: JsonValue; readonly prompt?: JsonValue };
  if (value !== undefined) return JSON.stringify(value, null, 2);
  return prompt === undefined ? plain(input) : inputWords(prompt);
}

/** What a run did from a call on. */
export interface Done {
  /** `null` if the price of a model is not known. */
  readonly costUsd: number | null;
  readonly tokens: number;
  readonly tools: readonly StepView[];
}

/** Returns the cost of the steps from an event on, and the tools that they called. Takes O(steps). */
export function doneFrom(steps: readonly StepView[], from: number): Done {
  const later = steps.filter(({ startSeq }) => startSeq >= from);
  const models = later.filter(({ kind }) => kind === "model");
  return {
    costUsd: models.reduce<number | null>(
      (sum, { costUsd }) => (sum === null || costUsd === null ? null : sum + costUsd),
      0,
    ),
    tokens: models.reduce((sum, { tokens }) => sum + tokens, 0),
    tools: later.filter(({ kind }) => kind === "tool"),
  };
}

/** Least limit that the form of a variant proposes, in dollars. */
const leastLimitUsd = 0.2;

/**
 * Returns the limit that the form of a variant proposes: one and a half times the recorded cost from the turn on.
 * Empty if the price of a model is unknown, because a run with a cost limit refuses such a model.
 */
export function proposedLimit(recordedUsd: number | null): string {
  if (recordedUsd === null) return "";
  return Math.max(leastLimitUsd, Math.ceil(recordedUsd * 150) / 100).toFixed(2);
}

/**
 * Returns the model calls of a task from which a variant can start. A repeated call is listed only once, with its
 * last attempt.
 */
export function turnsOf(steps: readonly StepView[], taskId: TaskId): readonly StepView[] {
  const calls = steps.filter((step) => step.kind === "model" && step.taskId === taskId);
  return [...new Map(calls.map((step) => [step.callSeq, step])).values()];
}

/** Returns the lines of an answer, each marked if the other answer does not contain it. */
export function markedLines(
  answer: string,
  other: string | null,
): readonly { text: string; isNew: boolean }[] {
  const known = new Set(other?.split("\n").map((line) => line.trim()));
  return answer
    .split("\n")
    .map((text) => ({ text, isNew: other !== null && text.trim() !== "" && !known.has(text.trim()) }));
}

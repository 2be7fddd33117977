import {
  messageText,
  readProperty,
  totalTokens,
  type AssistantMessage,
  type ChatMessage,
  type Event,
  type JsonValue,
  type ToolOutput,
} from "../../../../kernel/index.ts";
import { crashLoopHeadline } from "../../../view/crash-loop-words.ts";
import { folderWords } from "../../../view/folder-words.ts";
import { hiredWords } from "../../../view/hired-words.ts";
import { dollars, counted } from "../../terminal/format.ts";
import { policyWords } from "../../terminal/policy-words.ts";
import type { ShownImage, Tone } from "./chat-item.ts";

/**
 * Returns the text of a user's input, which may be a text, a message or content parts. An image is replaced by its
 * name.
 */
export function inputText(input: JsonValue): string {
  if (typeof input === "string") return input;
  const parts = Array.isArray(input) ? input : readProperty(input, "content");
  if (typeof parts === "string") return parts;
  if (!Array.isArray(parts)) return JSON.stringify(input);
  return (parts as readonly JsonValue[]).map(partText).join("\n");
}

/** Returns the images of a user's input whose bytes are contained in the input. */
export function imagesOf(input: JsonValue): readonly ShownImage[] {
  const parts = Array.isArray(input) ? input : readProperty(input, "content");
  if (!Array.isArray(parts)) return [];
  return (parts as readonly JsonValue[]).flatMap((part) => {
    const [mediaType, data] = [
      readProperty(part, "mediaType"),
      readProperty(readProperty(part, "source"), "data"),
    ];
    const isImage = readProperty(part, "type") === "image";
    return isImage && typeof mediaType === "string" && typeof data === "string" ? [{ mediaType, data }] : [];
  });
}

function partText(part: JsonValue): string {
  const text = readProperty(part, "text");
  if (typeof text === "string") return text;
  const [name, type] = [readProperty(part, "filename"), readProperty(part, "mediaType")];
  return `[${typeof name === "string" ? name : readProperty(part, "type") === "image" ? "image" : "file"}${typeof type === "string" ? `, ${type}` : ""}]`;
}

/** Returns the text of a message of the conversation. */
export function spokenText(message: ChatMessage): string {
  return message.role === "user" ? inputText(message as unknown as JsonValue) : messageText(message);
}

export function reasoningOf({ content }: AssistantMessage): string {
  return content.flatMap((part) => (part.type === "reasoning" ? [part.text] : [])).join("\n");
}

/** What a tool has returned, as text. */
export function outputText(output: ToolOutput): string {
  if (output.type === "text") return output.text;
  if (output.type === "json") return JSON.stringify(output.value, null, 2);
  return output.parts
    .map((part) => (part.type === "text" ? part.text : `[${part.type}, ${part.mediaType}]`))
    .join("\n");
}

/** Returns the last line of a tool's progress report. */
export function progressText(update: JsonValue): string {
  const text =
    typeof update === "string" ? update : (readProperty(update, "text") ?? readProperty(update, "output"));
  const shown = typeof text === "string" ? text : JSON.stringify(update);
  return shown.slice(-2_000).trimEnd().split("\n").at(-1) ?? "";
}

/**
 * Returns a note for the person about an event that is neither a message nor a call. `undefined` if the event is
 * not important for a person.
 */
export function noteOf(event: Event): { readonly text: string; readonly tone: Tone } | undefined {
  const trouble = troubleOf(event);
  if (trouble !== undefined) return { text: trouble, tone: "bad" };
  const text = folderWords(event) ?? hiredWords(event) ?? calmWords(event);
  if (text !== undefined) return { text, tone: "hold" };
  // Refusals, notices of extensions and errors of hooks.
  const words = policyWords(event);
  if (words === undefined) return undefined;
  return { text: words, tone: event.type === "extension_notice" ? "hold" : "bad" };
}

function troubleOf(event: Event): string | undefined {
  switch (event.type) {
    case "retry_start": {
      const { message, attempt, maxAttempts, delayMs } = event.data;
      return `The model failed (${message}); attempt ${attempt} of ${maxAttempts} in ${(delayMs / 1000).toFixed(1)} s`;
    }
    case "model_fallback":
      return `${event.data.from.modelId} failed; ${event.data.to.modelId} answers instead`;
    case "budget_exhausted":
      return `The budget of ${event.data.limit} ${event.data.dimension} is used up; /top-up adds to it`;
    case "budget_warning":
      return `${event.data.used} of ${event.data.limit} ${event.data.dimension} are used`;
    case "budget_lost":
      return `A call ended without reported usage: ${counted(event.data.tokens)} tokens are charged`;
    case "task_retry":
      return `The agent's code failed (${event.data.failure.message}) and starts again`;
    case "step_retry":
      return `${event.data.name} failed (${event.data.failure.message}); attempt ${event.data.attempt + 1} follows`;
    case "input_unread":
      return `An agent ended before it read: ${inputText(event.data.input)}`;
    default:
      return undefined;
  }
}

function calmWords(event: Event): string | undefined {
  switch (event.type) {
    case "run_recover":
      return "Another process continues the run where it stopped; recorded answers are not paid again";
    case "run_pause":
      return event.data.crashLoop === undefined
        ? `${event.data.by} paused the run; /continue continues it`
        : `Paused as a crash loop: ${crashLoopHeadline(event.data.crashLoop)}`;
    case "run_resume":
      return `${event.data.by} resumed the run`;
    case "run_fork":
      return `Forked from ${event.data.origin} after event ${event.seq - 1}`;
    case "run_cancel":
    case "task_cancel":
      return `${event.data.by ?? "An agent above"} stopped it: ${event.data.reason}`;
    case "budget_top_up":
      return `${event.data.by} added to the budget: ${Object.entries(event.data.add)
        .map(([name, value]) => (name === "maxCostUsd" ? dollars(value) : `${counted(value)} ${name}`))
        .join(", ")}`;
    case "usage_corrected":
      return `A call without an answer cost ${dollars(event.data.usage.costUsd)}: ${counted(totalTokens(event.data.usage))} tokens`;
    case "spawn_refuse":
      return `${event.data.agentId} got no seat: ${event.data.reason.replaceAll("_", " ")}`;
    case "spawn_wait":
      return `${event.data.agentId} waits for a seat`;
    default:
      return undefined;
  }
}

import { Fault, type EarlierAttempts, type JsonObject, type JsonValue } from "../../kernel/index.ts";
import type { StartedProcess } from "./orphans.ts";

/**
 * Facts that a hired task records with `attempt.keep`, each before the described action:
 *
 * - `mark`: a process with this mark is about to be started. A later attempt ends all processes with the mark.
 * - `process`: the process was started. A later attempt ends it if it still lives.
 * - `session`: the agent has opened a session, to which no prompt was sent yet.
 * - `prompt`: the prompt is about to be sent. A later attempt does not send it again before it has looked for it in
 *   the history.
 * - `answer`: the turn of the prompt has ended.
 */
export type HireRecord =
  | { readonly type: "mark"; readonly mark: string }
  | ({ readonly type: "process" } & StartedProcess)
  | { readonly type: "session"; readonly sessionId: string }
  | { readonly type: "prompt"; readonly text: string; readonly from: PromptSource }
  | { readonly type: "answer"; readonly text: string; readonly stopReason: string };

/** The origin of a prompt. */
type PromptSource = "input" | "follow_up" | "steering";

/** A prompt of the task, and its answer. */
export interface Exchange {
  readonly prompt: string;
  readonly from: PromptSource;
  answer: string | undefined;
  stopReason: string | undefined;
}

/** The actions of earlier attempts of a hired task. */
export class HireRecords {
  readonly marks: readonly string[];
  readonly processes: readonly StartedProcess[];
  readonly sessionId: string | undefined;
  /** The prompts that were sent, in their order. Only the last one may have no answer. */
  readonly exchanges: readonly Exchange[];
  readonly steering: readonly string[];
  readonly followUps: readonly string[];

  constructor({ kept, steering, followUps }: EarlierAttempts) {
    const marks: string[] = [];
    const processes: StartedProcess[] = [];
    const exchanges: Exchange[] = [];
    let sessionId: string | undefined;
    for (const record of kept as readonly unknown[] as readonly HireRecord[])
      switch (record.type) {
        case "mark":
          marks.push(record.mark);
          break;
        case "process":
          processes.push({ pid: record.pid, startedAt: record.startedAt });
          break;
        case "session":
          sessionId = record.sessionId;
          break;
        case "prompt":
          exchanges.push({
            prompt: record.text,
            from: record.from,
            answer: undefined,
            stopReason: undefined,
          });
          break;
        case "answer": {
          const last = exchanges.at(-1);
          if (last !== undefined) Object.assign(last, { answer: record.text, stopReason: record.stopReason });
          break;
        }
      }
    this.marks = marks;
    this.processes = processes;
    this.sessionId = sessionId;
    this.exchanges = exchanges;
    this.steering = steering.map(inputText);
    this.followUps = followUps.map(inputText);
  }
}

/** Returns the text of an input that arrived while the task ran. */
export function inputText(input: JsonValue): string {
  if (typeof input === "string") return input;
  if (Array.isArray(input)) return textOfParts(input as readonly JsonValue[]) ?? JSON.stringify(input);
  const { prompt, message } = (input ?? {}) as JsonObject;
  if (typeof prompt === "string") return prompt;
  if (typeof message === "string") return message;
  return Array.isArray(prompt)
    ? (textOfParts(prompt as readonly JsonValue[]) ?? JSON.stringify(input))
    : JSON.stringify(input);
}

function textOfParts(parts: readonly JsonValue[]): string | undefined {
  const texts = parts.flatMap((part) => {
    const { type, text } = (part ?? {}) as JsonObject;
    return type === "text" && typeof text === "string" ? [text] : [];
  });
  return texts.length === 0 ? undefined : texts.join("\n");
}

/** Maximum number of characters of a history that are kept. */
const mostCharacters = 64 * 1024 * 1024;

/** The user's messages in the history of an agent. Each of them is found only once. */
export class SessionHistory {
  #texts: string[] = [];
  #isOpen = false;
  #characters = 0;

  /**
   * Adds a piece of a message. `isUser` says whether it belongs to a user's message; a piece of another message
   * ends that message. Throws `agent_protocol` if all messages together are too long.
   */
  add(text: string, isUser: boolean): void {
    if (isUser) this.#characters += text.length;
    if (this.#characters > mostCharacters)
      throw new Fault(
        "agent_protocol",
        `the agent reports a history with more than ${mostCharacters} characters of the user, so it was ended`,
      );
    if (!isUser) this.#isOpen = false;
    else if (this.#isOpen) this.#texts.push((this.#texts.pop() ?? "") + text);
    else {
      this.#texts.push(text);
      this.#isOpen = true;
    }
  }

  /**
   * Searches for a prompt and removes it, so that a second prompt with the same text is found only if it occurs
   * twice.
   */
  take(prompt: string): boolean {
    const sought = plain(prompt);
    if (sought === "") return false;
    for (const [index, text] of this.#texts.entries()) {
      const at = plain(text).indexOf(sought);
      if (at === -1) continue;
      this.#texts[index] = plain(text).slice(0, at) + plain(text).slice(at + sought.length);
      return true;
    }
    return false;
  }
}

/** Returns a text without differences in white space, because agents may change white space when they store a text. */
function plain(text: string): string {
  return text.replaceAll(/\s+/gu, " ").trim();
}

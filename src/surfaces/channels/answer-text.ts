import {
  asksAboutCall,
  readProperty,
  visibleLine,
  visibleText,
  type JsonValue,
  type PendingApproval,
  type RunResult,
  type TopUp,
} from "../../kernel/index.ts";
import { foreignCallLines } from "../view/foreign-call-words.ts";
import { mergeLines, mergeOf } from "../view/merge-words.ts";
import { amountWords, lackOf, type Lack } from "../view/top-up-offer.ts";
import type { Choice } from "./channel.ts";

/**
 * Returns the text that a person receives for an ended run. Empty for a run that was stopped before it had an
 * answer. `left` is the amount that the person may add to the limits of the run.
 */
export function answerText(
  { status, output, runId, error }: Pick<RunResult<JsonValue>, "status" | "output" | "runId" | "error">,
  left: TopUp,
): string {
  const text = typeof output === "string" ? output : output === null ? "" : JSON.stringify(output, null, 2);
  if (status === "completed") return text === "" ? "(no answer)" : text;
  if (status === "cancelled") return text === "" ? "" : `${text}\n\n[stopped]`;
  const lack = lackOf({ status, failure: error, budget: null });
  const ending = lack === null ? (endings[status] ?? "not completed") : limitText(lack, left[lack.name]);
  const notice = `[${ending}: ${runId}]`;
  return text === "" ? notice : `${text}\n\n${notice}`;
}

/** What a person reads about a run that did not complete. The reason may contain internal details and is left out. */
const endings: Readonly<Record<string, string>> = {
  max_turns: "stopped at the limit of turns",
  max_output: "cut at the output limit of the model",
  budget_exhausted: "stopped because the budget is used up",
  deadline_exceeded: "stopped at the deadline",
  guardrail_tripped: "stopped by a guardrail",
  paused: "paused",
  failed: "failed",
};

/** Returns a text that says at which limit a run stopped, and who may raise the limit. */
function limitText({ name, limit }: Lack, left: number): string {
  const reached = limit === null ? "" : ` of ${amountWords(name, limit)}`;
  const who =
    left > 0
      ? `you can add up to ${amountWords(name, left)} here or on the page of the server, and an admin any amount`
      : "only an admin of the server can raise it";
  return `stopped at its ${limitNouns[name]}${reached}; ${who}`;
}

const limitNouns: Readonly<Record<Lack["name"], string>> = {
  maxCostUsd: "budget",
  maxTurns: "limit",
  maxTokens: "limit",
  deadlineMs: "deadline",
};

/** Returns the question whether a run that stopped at a limit should continue with a top-up. */
export function topUpForm(runId: string, name: Lack["name"], amount: number): QuestionForm {
  const words = amountWords(name, amount);
  return {
    text: `Add ${words} to the ${limitNouns[name]} of ${runId}, so that it continues?`,
    choices: [{ label: `Add ${words}`, code: "a" }],
    answers: [],
    takesText: false,
  };
}

/** How a question can be answered in a channel. */
export interface QuestionForm {
  readonly text: string;
  /** Labels of the choices with their codes, which `Questions` turns into `Choice.data`. */
  readonly choices: readonly { readonly label: string; readonly code: string }[];
  /** The answers of those choices whose code is a number, which is the index in this list. */
  readonly answers: readonly string[];
  /** Whether the next message of the person is the answer. */
  readonly takesText: boolean;
}

const maxInput = 1_500;
/** Maximum length of a call that is shown for approval, in characters. */
const maxCall = 10_000;
/** Maximum number of choices in a message. Telegram accepts 100 buttons, and one is for declining. */
const maxOptions = 99;
/** Longest label of a button, in characters. */
const maxLabel = 60;
const deny = { label: "Deny", code: "d" } as const;
const decline = { label: "Decline", code: "d" } as const;

/** Returns the form of a question. `undefined` if only a program can answer it. */
export function questionForm({
  kind,
  toolName,
  input,
  parsedInput,
  reason,
  agentId,
  foreign,
}: PendingApproval): QuestionForm | undefined {
  if (kind === "client_tool") return undefined;
  if (asksAboutCall({ kind })) {
    const told = foreign === undefined ? [] : [...foreignCallLines(foreign), ""];
    const call = visibleText([...told, JSON.stringify(parsedInput ?? input, null, 2)].join("\n"));
    // A person must see the whole call to approve it.
    const isShown = call.length <= maxCall;
    return {
      text: `${visibleLine(agentId)} asks to use ${visibleLine(toolName)}:\n${isShown ? call : `${call.slice(0, maxInput).toWellFormed()} [...]\n\nThe call is too long to be approved here. Use the page of the server, or reeve approve.`}\n\n${cut(reason)}`,
      choices: isShown ? [{ label: "Approve", code: "a" }, deny] : [deny],
      answers: [],
      takesText: false,
    };
  }
  const message = readProperty(input, "message") ?? readProperty(input, "question");
  const question = typeof message === "string" ? message : reason;
  const text = cut(question);
  if (kind === "top_up")
    return {
      text: `${visibleLine(agentId)}: ${text}`,
      choices: [{ label: "Add it", code: "a" }, decline],
      answers: [],
      takesText: false,
    };
  const merge = kind === "merge" ? mergeOf(input) : null;
  if (merge !== null) {
    const changes = visibleText(mergeLines(merge).join("\n"));
    // A person must see the whole change to merge it.
    const isShown = changes.length <= maxCall && merge.isCut !== true;
    const shown = isShown
      ? changes
      : `${changes.slice(0, maxInput).toWellFormed()} [...]\n\nThe change is too long to be merged from here. Use the page of the server, or reeve approve.`;
    return {
      text: `${visibleLine(agentId)}: ${text}\n\n${shown}`,
      choices: isShown ? [{ label: "Merge", code: "a" }, decline] : [decline],
      answers: [],
      takesText: false,
    };
  }
  if (kind === "confirm") {
    const no = { label: "No", code: "d" };
    // A person must see the whole question to confirm it.
    const isShown = visibleText(question).length <= maxInput;
    return {
      text: isShown
        ? text
        : `${text}\n\nThe question is too long to be confirmed here. Use the page of the server, or reeve approve.`,
      choices: isShown ? [{ label: "Yes", code: "a" }, no] : [no],
      answers: [],
      takesText: false,
    };
  }
  if (kind === "elicitation")
    return {
      text: `${text}\n\nAnswer it on the page of the server.`,
      choices: [decline],
      answers: [],
      takesText: false,
    };
  const options = readProperty(input, kind === "select" ? "choices" : "options");
  const all = Array.isArray(options) ? options.map(String) : [];
  const offered = offeredLines(all.map(visibleLine));
  const answers = all.slice(0, offered.length);
  const hidden = all.length - answers.length;
  // A button shows the beginning of a long choice, so the text lists the choices in full.
  const isListed = offered.some((line) => line.length > maxLabel);
  const numbered = isListed ? offered.map((line, index) => `${index + 1}. ${line}`) : offered;
  return {
    text: [
      text,
      ...(isListed ? [numbered.join("\n")] : []),
      ...(hidden === 0 ? [] : [`${hidden} more choices are on the page of the server.`]),
    ].join("\n\n"),
    choices: [
      ...numbered.map((label, index) => ({
        label: label.slice(0, maxLabel).toWellFormed(),
        code: String(index),
      })),
      decline,
    ],
    answers,
    takesText: kind !== "select",
  };
}

/** Returns the first choices, as many as a message can show completely. */
function offeredLines(lines: readonly string[]): readonly string[] {
  let size = 0;
  const end = lines.findIndex((line) => (size += line.length) > maxCall);
  return lines.slice(0, Math.min(maxOptions, end === -1 ? lines.length : end));
}

/** Returns the choices of a question. The data of a choice contains its code and the token of the question. */
export function choicesOf({ choices }: Pick<QuestionForm, "choices">, token: string): readonly Choice[] {
  return choices.map(({ label, code }) => ({ label, data: `${code}:${token}` }));
}

function cut(source: string): string {
  const text = visibleText(source);
  return text.length <= maxInput ? text : `${text.slice(0, maxInput).toWellFormed()} [...]`;
}

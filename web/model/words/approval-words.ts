import { visibleLine, visibleText, type JsonValue } from "../../../src/kernel/index.ts";
import { oneLine, personName, plain, span } from "../../base/format.ts";
import { amountWords } from "../../../src/surfaces/view/top-up-offer.ts";
import { isHandOff, targetOf } from "../../../src/surfaces/view/task-words.ts";

type Fields = Readonly<Record<string, JsonValue | undefined>>;

/** What a request for a decision is about. */
interface Asked {
  readonly kind: string;
  readonly toolName: string;
  readonly input: JsonValue;
  readonly parsedInput?: JsonValue;
  readonly reason?: string;
}

function fieldsOf(input: JsonValue): Fields {
  return typeof input === "object" && input !== null && !Array.isArray(input) ? (input as Fields) : {};
}

/**
 * Describes in a sentence which agent wants to do what. As in all texts of a request, hidden characters are made
 * visible.
 */
export function sentence(agentId: string, { kind, toolName, input, parsedInput }: Asked): string {
  const offer = kind === "top_up" ? offerOf(input) : null;
  if (offer !== null)
    return visibleLine(`${agentId} needs ${offer.short}. ${offer.amount} more lets it continue.`);
  if (kind === "foreign_tool_call") return visibleLine(`The program of ${agentId} wants to call ${toolName}`);
  if (kind !== "tool_call") return questionText(input) ?? visibleLine(`${agentId} asks a question`);
  const { command, path } = fieldsOf(parsedInput ?? input);
  if (toolName === "bash" && typeof command === "string")
    return visibleLine(`${agentId} wants to run a command`);
  if (typeof path === "string" && (toolName === "edit" || toolName === "write"))
    return visibleLine(`${agentId} wants to ${toolName} ${path}`);
  return visibleLine(
    isHandOff(toolName)
      ? `${agentId} wants to hire ${targetOf(toolName, null)}`
      : `${agentId} wants to call ${toolName}`,
  );
}

/** Describes the top-up that a question offers. `null` if its input contains no amount. */
export function offerOf(
  input: JsonValue,
): { readonly amount: string; readonly limit: string; readonly short: string } | null {
  const { name, amount, limit, short } = fieldsOf(input);
  if (name !== "maxCostUsd" && name !== "maxTokens" && name !== "maxTurns") return null;
  if (typeof amount !== "number" || typeof limit !== "number" || typeof short !== "number") return null;
  return {
    amount: amountWords(name, amount),
    limit: amountWords(name, limit),
    short: short > 0 ? `${amountWords(name, short)} more than its limit` : "more than its limit",
  };
}

/** Describes why an agent asks. `null` if the question already contains the reason. */
export function reasonWords({ kind, toolName, input, reason }: Asked): string | null {
  const offer = kind === "top_up" ? offerOf(input) : null;
  if (offer !== null) return `The next call does not fit into what is left of ${offer.limit}.`;
  if (reason === undefined || visibleText(reason) === questionText(input)) return null;
  const words = `The tool ${toolName} is set to ask a person first.`;
  return visibleText(reason === `${toolName} asks for it` ? words : reason);
}

export function questionText(input: JsonValue): string | null {
  if (typeof input === "string") return oneLine(visibleText(input));
  const { question, message } = fieldsOf(input);
  if (typeof question === "string") return visibleText(question);
  return typeof message === "string" ? visibleText(message) : null;
}

export function choicesOf(input: JsonValue): readonly string[] {
  const { choices, options } = fieldsOf(input);
  const list = Array.isArray(choices) ? choices : Array.isArray(options) ? options : [];
  return list.filter((choice) => typeof choice === "string");
}

/**
 * Returns the change that an edit makes, as a diff without line numbers, because the call does not contain them.
 * `null` for other calls.
 */
export function patchOf({ toolName, input, parsedInput }: Asked): string | null {
  const { oldText, newText, content } = fieldsOf(parsedInput ?? input);
  if (toolName === "edit" && typeof oldText === "string" && typeof newText === "string")
    return ["@@", ...signed("-", oldText), ...signed("+", newText)].join("\n");
  if (toolName === "write" && typeof content === "string") return ["@@", ...signed("+", content)].join("\n");
  return null;
}

function signed(sign: string, text: string): readonly string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line) => sign + line);
}

/** Returns the exact call: a command as it is executed, other arguments as JSON. */
export function callText({ toolName, input, parsedInput }: Asked): string {
  const { command } = fieldsOf(parsedInput ?? input);
  return visibleText(command === undefined ? `${toolName} ${plain(parsedInput ?? input)}` : plain(command));
}

/**
 * Returns the arguments of a call that are shown neither in the sentence nor in the command or diff. `null` if
 * there are none.
 */
export function otherArguments(asked: Asked): string | null {
  if (asked.kind !== "tool_call") return null;
  const fields = fieldsOf(asked.parsedInput ?? asked.input);
  const change = asked.toolName === "edit" ? ["oldText", "newText"] : ["content"];
  const isPatch = patchOf(asked) !== null;
  if (!isPatch && fields["command"] === undefined) return null;
  const shown = isPatch ? [...change, ...(typeof fields["path"] === "string" ? ["path"] : [])] : ["command"];
  const others = Object.entries(fields).filter(([name]) => !shown.includes(name));
  return others.length === 0 ? null : visibleText(JSON.stringify(Object.fromEntries(others), null, 2));
}

/** Describes what happened to a question whose agent ended before a person answered it. */
export function droppedWords(agentId: string, { kind, toolName }: Pick<Asked, "kind" | "toolName">): string {
  const what = kind === "tool_call" || kind === "foreign_tool_call" ? `decided on ${toolName}` : "answered";
  return `No one ${what} before ${agentId} ended.`;
}

/**
 * Describes who answered first, if the answer of the reader of the page arrived too late. The first answer may come
 * from another window of the same person.
 */
export function firstWords(by: string | undefined, decision: string, passedMs: number | null): string {
  const ago = passedMs === null ? "" : passedMs < 1_000 ? " just now" : ` ${span(passedMs)} ago`;
  const where = by === "person" ? ", in another window" : "";
  return `${personName(by)} ${decision} this${ago}${where}.`;
}

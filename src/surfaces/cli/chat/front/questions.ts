import {
  asksAboutCall,
  readProperty,
  visibleLine,
  visibleText,
  type ApprovalDecision,
  type ApprovalRequest,
  type JsonObject,
  type JsonValue,
} from "../../../../kernel/index.ts";
import { foreignCallLines } from "../../../view/foreign-call-words.ts";
import { mergeLines, mergeOf } from "../../../view/merge-words.ts";
import type { QuestionView } from "../../../view/run-view.ts";
import type { Choice } from "../screen/screen.ts";
import type { Desk } from "./desk.ts";

/**
 * Describes line by line what the requested action would do, with hidden characters made visible: the command, the
 * change, or the arguments.
 */
export function requestDetails({ kind, input, parsedInput, foreign }: ApprovalRequest): readonly string[] {
  if (foreign !== undefined)
    return [...foreignCallLines(foreign), ...argumentLines(parsedInput ?? input)].map(visibleText);
  const merge = kind === "merge" ? mergeOf(input) : null;
  if (merge !== null) return mergeLines(merge).map(visibleText);
  if (!asksAboutCall({ kind })) return [];
  return argumentLines(parsedInput ?? input).map(visibleText);
}

/**
 * Returns the arguments of a call, one per line. A long text is put on separate lines; an edit is shown as a
 * change.
 */
export function argumentLines(input: JsonValue): readonly string[] {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    return JSON.stringify(input).split("\n");
  const { oldText, newText, ...others } = input as JsonObject;
  const isEdit = typeof oldText === "string" && typeof newText === "string";
  const shown = Object.entries(isEdit ? others : input).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const lines = text.split("\n");
    return lines.length === 1 ? [`${name}: ${text}`] : [`${name}:`, ...lines.map((line) => `  ${line}`)];
  });
  if (!isEdit) return shown;
  return [
    ...shown,
    ...oldText.split("\n").map((line) => `- ${line}`),
    ...newText.split("\n").map((line) => `+ ${line}`),
  ];
}

/** The question of a request in one line. */
export function questionLine({ kind, toolName, input, reason }: ApprovalRequest): string {
  if (asksAboutCall({ kind })) return `May it call ${visibleLine(toolName)}? ${visibleLine(reason)}`;
  const message = readProperty(input, "message") ?? readProperty(input, "question");
  return visibleText(typeof message === "string" ? message : reason);
}

/** Text that is shown to a person whose question was withdrawn. */
export const goneWords =
  "The question no longer waits for an answer: it was answered elsewhere, or its agent has stopped.";

/**
 * Asks the person a question of a run. Resolves to `undefined` if the person leaves the question open, or if the
 * question was answered elsewhere, in which case `signal` aborts.
 */
export async function askQuestion(
  desk: Pick<Desk, "pick" | "ask" | "say">,
  { request, agentId }: QuestionView,
  signal: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  const { kind, input } = request;
  const title = `${visibleLine(agentId)}: ${questionLine(request)}`;
  const pick = <Value>(choices: readonly Choice<Value>[]): Promise<Value | undefined> =>
    desk.pick({ title, choices, signal });
  if (asksAboutCall(request)) return askAboutCall(desk, request, pick, signal);
  const yesOrNo = [
    { value: "yes", label: kind === "top_up" ? "Add it" : "Yes", key: "y" },
    { value: "no", label: "No", key: "n" },
  ] as const;
  if (kind === "confirm" || kind === "merge" || kind === "top_up") {
    const answer = await pick(yesOrNo);
    if (answer === undefined) return undefined;
    return answer === "yes" ? { decision: "approved" } : { decision: "denied", reason: "by the person" };
  }
  if (kind === "elicitation") return askForm(desk, title, request, signal);
  const offered = readProperty(input, kind === "select" ? "choices" : "options");
  const texts = Array.isArray(offered) ? offered.map(String) : [];
  if (texts.length > 0) {
    const own = kind === "select" ? [] : [{ value: -1, label: "Another answer…" }];
    const at = await pick([...texts.map((text, value) => ({ value, label: visibleLine(text) })), ...own]);
    if (at === undefined) return undefined;
    const chosen = texts[at];
    if (chosen !== undefined) return { decision: "approved", input: chosen };
  }
  const text = await desk.ask(title, { signal });
  return text === undefined ? undefined : { decision: "approved", input: text };
}

async function askAboutCall(
  desk: Pick<Desk, "ask" | "say">,
  request: ApprovalRequest,
  pick: <Value>(choices: readonly Choice<Value>[]) => Promise<Value | undefined>,
  signal: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  const { kind, toolName, input } = request;
  const canEdit = kind === "tool_call";
  while (!signal.aborted) {
    const answer = await pick([
      { value: "yes", label: "Yes", key: "y" },
      { value: "no", label: "No, and say why", key: "n" },
      ...(canEdit ? ([{ value: "edit", label: "Edit the arguments", key: "e" }] as const) : []),
      { value: "always", label: `Always allow ${visibleLine(toolName)}`, key: "a" },
    ]);
    if (answer === undefined) return undefined;
    if (answer === "yes") return { decision: "approved" };
    if (answer === "always") return { decision: "approved", remember: true };
    if (answer === "no") {
      const reason = await desk.ask("Why not? The model reads it. Enter alone gives no reason.", { signal });
      if (reason === undefined) continue;
      return { decision: "denied", reason: reason.trim() === "" ? "by the person" : reason.trim() };
    }
    const initial = visibleText(JSON.stringify(input));
    const edited = await desk.ask("The arguments as JSON:", { initial, signal });
    if (edited === undefined) continue;
    const value = parsed(edited);
    if (value !== undefined) return { decision: "approved", input: value };
    desk.say("The arguments are not valid JSON. The call was not made.", "bad");
  }
  return undefined;
}

/** Asks for the fields of a form, one after another. */
async function askForm(
  desk: Pick<Desk, "ask" | "pick">,
  title: string,
  { input }: ApprovalRequest,
  signal: AbortSignal,
): Promise<ApprovalDecision | undefined> {
  const properties = readProperty(readProperty(input, "requestedSchema"), "properties");
  if (typeof properties !== "object" || properties === null) {
    const isDone = await desk.pick({
      title,
      signal,
      choices: [
        { value: true, label: "Done", key: "y" },
        { value: false, label: "Decline", key: "n" },
      ],
    });
    if (isDone === undefined) return undefined;
    return isDone ? { decision: "approved" } : { decision: "denied", reason: "by the person" };
  }
  const form: Record<string, JsonValue> = {};
  for (const [name, schema] of Object.entries(properties as JsonObject)) {
    const about = readProperty(schema, "description");
    const answer = await desk.ask(
      `${title}\n${visibleLine(name)}${typeof about === "string" ? `: ${visibleLine(about)}` : ""}`,
      { signal },
    );
    if (answer === undefined) return undefined;
    if (answer !== "") form[name] = fieldValue(answer, readProperty(schema, "type"));
  }
  return { decision: "approved", input: form };
}

function fieldValue(text: string, type: unknown): JsonValue {
  // A text that is no number stays a text, which the agent refuses by name.
  if (type === "number" || type === "integer") return Number.isFinite(Number(text)) ? Number(text) : text;
  if (type === "boolean") return /^(?:y|yes|true|1)$/iu.test(text.trim());
  return text;
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    // The caller says that it is not JSON.
    return undefined;
  }
}

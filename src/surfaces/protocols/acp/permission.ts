import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import {
  asksAboutCall,
  visibleLine,
  visibleText,
  type ApprovalDecision,
  type ApprovalRequest,
  type JsonValue,
} from "../../../kernel/index.ts";
import { foreignCallLines } from "../../view/foreign-call-words.ts";
import { textBlock } from "./content-blocks.ts";
import { toolCallView } from "./tool-call-view.ts";

/** A question with the ids under which the editor knows it. */
export interface ShownQuestion {
  readonly questionId: string;
  /** Id of the call that the editor shows. `null` if the editor shows no call for the question. */
  readonly callId: string | null;
  readonly request: ApprovalRequest;
}

/** The session to which a question belongs, and the folder in which its tools work. */
export interface QuestionPlace {
  readonly sessionId: string;
  readonly root: string;
}

const allowOnce: PermissionOption = { optionId: "allow", name: "Allow", kind: "allow_once" };
const allowAlways: PermissionOption = {
  optionId: "always",
  name: "Always allow this tool",
  kind: "allow_always",
};
const reject: PermissionOption = { optionId: "reject", name: "Reject", kind: "reject_once" };

/** Prefix of option ids that are choices of a question. */
const choice = "choice ";

/**
 * Returns the request with which an editor asks its user. `undefined` for a question that needs more than a choice,
 * such as a form, and for the call of a client-side tool. In its texts and arguments, hidden characters are made
 * visible; `locations` contains the real paths, because editors open them.
 */
export function permissionRequest(
  { questionId, callId, request }: ShownQuestion,
  { sessionId, root }: QuestionPlace,
): RequestPermissionRequest | undefined {
  const options = optionsOf(request);
  if (options === undefined) return undefined;
  const { toolName, input, parsedInput = input, reason } = request;
  const isCall = asksAboutCall(request);
  const { title, kind, locations, content } = toolCallView(toolName, parsedInput, root);
  const told = request.foreign === undefined ? [] : foreignCallLines(request.foreign);
  const said = told.length === 0 ? [] : [{ type: "content", content: textBlock(told.join("\n")) } as const];
  return {
    sessionId,
    options,
    toolCall: {
      toolCallId: callId ?? questionId,
      title: isCall ? title : visibleText(messageOf(input, reason)),
      kind: isCall ? kind : "other",
      status: "pending",
      locations: isCall ? locations : [],
      content: visible([
        ...(isCall ? content : []),
        ...said,
        { type: "content", content: textBlock(reason) },
      ]),
      rawInput: visible(parsedInput),
    },
  };
}

/** Returns the decision of the editor's user. `undefined` if the user has cancelled the prompt. */
export function decisionOf(
  { outcome }: RequestPermissionResponse,
  request: ApprovalRequest,
): ApprovalDecision | undefined {
  if (outcome.outcome !== "selected") return undefined;
  const { optionId } = outcome;
  const place = optionsOf(request)?.findIndex((option) => option.optionId === optionId) ?? -1;
  // An option that was not offered is no permission.
  if (place < 0 || optionId === reject.optionId)
    return { decision: "denied", reason: "the user rejected it in the editor" };
  if (request.kind === "select") return { decision: "approved", input: choicesOf(request)[place] ?? null };
  return { decision: "approved", ...(optionId === allowAlways.optionId && { remember: true }) };
}

function optionsOf(request: ApprovalRequest): PermissionOption[] | undefined {
  switch (request.kind) {
    case "tool_call":
      return [allowOnce, allowAlways, reject];
    case "foreign_tool_call":
      return [allowOnce, reject];
    case "merge":
    case "question":
    case "confirm":
      return [
        { ...allowOnce, name: "Yes" },
        { ...reject, name: "No" },
      ];
    case "select": {
      const choices = choicesOf(request);
      if (choices.length === 0) return undefined;
      const offered = choices.map((name, index): PermissionOption => ({
        optionId: `${choice}${index}`,
        name: visibleLine(name),
        kind: "allow_once",
      }));
      return [...offered, { ...reject, name: "None of these" }];
    }
    default:
      return undefined;
  }
}

/** Returns a JSON value for display: the hidden characters in all of its strings and names are made visible. */
function visible<Value>(value: Value): Value {
  if (typeof value === "string") return visibleText(value) as Value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(visible) as Value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [visibleLine(name), visible(each)]),
  ) as Value;
}

function choicesOf({ input }: ApprovalRequest): readonly string[] {
  const choices = fieldOf(input, "choices");
  return Array.isArray(choices) ? choices.filter((each): each is string => typeof each === "string") : [];
}

function messageOf(input: JsonValue, reason: string): string {
  const message = fieldOf(input, "message");
  return typeof message === "string" ? message : reason;
}

function fieldOf(value: JsonValue, name: string): unknown {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

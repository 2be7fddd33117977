import type { JsonObject, JsonValue, UserPart } from "../../../kernel/index.ts";
import type { CallOutput, GivenOutputs } from "./client-calls.ts";
import { ClientHistory, inputOf } from "./openai-history.ts";
import { invalidParameter } from "./openai-parameters.ts";
import { filePart, imagePart, invalidPart, partsOf } from "./openai-messages.ts";

/** The input of a request. */
export interface ResponseInput extends GivenOutputs {
  /** The texts of the system and developer messages. Empty if there are none. */
  readonly instructions: string;
  /** The whole conversation. Throws `invalid_argument` if no agent could answer it. */
  conversation(): JsonValue;
}

/** Types of the items that belong to an answer. */
const answerTypes: ReadonlySet<unknown> = new Set(["function_call", "reasoning", "item_reference"]);

/** Reads the input of a request. Items of the type `item_reference` must have been replaced. */
export function readInput(input: JsonValue): ResponseInput {
  const items = typeof input === "string" ? [{ role: "user", content: input }] : (input as JsonObject[]);
  const last = items.findLastIndex((item) => item["role"] === "assistant" || answerTypes.has(item["type"]));
  const instructions: string[] = [];
  const outputs: CallOutput[] = [];
  const said: UserPart[] = [];
  for (const [index, item] of items.entries()) {
    const place = `input[${index}]`;
    if (isMessage(item) && (item["role"] === "system" || item["role"] === "developer"))
      instructions.push(textOf(item["content"], `${place}.content`));
    if (index <= last) continue;
    if (item["type"] === "function_call_output") outputs.push(outputOf(item, place));
    else if (isMessage(item) && item["role"] === "user") said.push(...userParts(item, place));
  }
  return {
    instructions: instructions.filter((each) => each.trim() !== "").join("\n\n"),
    outputs,
    said: said.length === 0 ? undefined : inputOf(said),
    hasAnswer: last >= 0,
    conversation: () => conversationOf(items),
  };
}

function conversationOf(items: readonly JsonObject[]): JsonValue {
  const history = new ClientHistory();
  for (const [index, item] of items.entries()) {
    const place = `input[${index}]`;
    const { type, role, content, call_id: callId, name, arguments: written } = item;
    if (type === "function_call") history.addCall({ callId, name, written }, place);
    else if (type === "function_call_output") {
      const output = outputOf(item, place);
      history.addOutput(output.callId, output.value, place);
    } else if (type === "reasoning") continue;
    else if (isMessage(item) && role === "user") history.addUser(userParts(item, place));
    else if (isMessage(item) && role === "assistant") history.addText(textOf(content, `${place}.content`));
    else if (!isMessage(item) || (role !== "system" && role !== "developer")) throw invalidItem(place, item);
  }
  return history.toInput("input");
}

function isMessage({ type, role }: JsonObject): boolean {
  return type === "message" || (type === undefined && typeof role === "string");
}

function invalidItem(place: string, { type, role }: JsonObject) {
  return invalidParameter(
    place,
    `invalid ${place} with the type ${JSON.stringify(type ?? null)} and the role ${JSON.stringify(role ?? null)}: expected a message of user, assistant, system or developer, a function_call, a function_call_output, a reasoning or an item_reference`,
  );
}

function userParts(item: JsonObject, place: string): readonly UserPart[] {
  const { content } = item;
  if (typeof content === "string") {
    if (content !== "") return [{ type: "text", text: content }];
    throw invalidParameter(`${place}.content`, `invalid ${place}.content: it is empty; remove the item`);
  }
  return partsOf(content, `${place}.content`).map((part, index) =>
    userPart(part, `${place}.content[${index}]`),
  );
}

function userPart(part: JsonObject, place: string): UserPart {
  const { type, text, image_url: address, file_id: stored } = part;
  if (type === "input_text" && typeof text === "string") return { type: "text", text };
  if (typeof stored === "string")
    throw invalidParameter(
      place,
      `invalid ${place}: files are not stored, so file_id is not supported; send the content`,
    );
  if (type === "input_image") return imagePart(address, `${place}.image_url`);
  if (type === "input_file") return filePart(part, place);
  throw invalidPart(place, part, "a part of the type input_text, input_image or input_file");
}

/** The text of a message whose content may have no other parts. */
function textOf(content: JsonValue | undefined, place: string): string {
  if (typeof content === "string") return content;
  return partsOf(content, place)
    .map((part, index) => {
      const text = part["type"] === "refusal" ? part["refusal"] : part["text"];
      if (typeof text === "string") return text;
      throw invalidPart(`${place}[${index}]`, part, "a part with a text");
    })
    .join("");
}

function outputOf({ call_id: callId, output }: JsonObject, place: string): CallOutput {
  if (typeof callId !== "string" || callId === "")
    throw invalidParameter(`${place}.call_id`, `invalid ${place}.call_id: expected the id of a call`);
  return { callId, value: textOf(output, `${place}.output`), place };
}

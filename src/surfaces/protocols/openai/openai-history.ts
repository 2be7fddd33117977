import type { JsonObject, JsonValue, UserPart } from "../../../kernel/index.ts";
import { invalidParameter, isObject } from "./openai-parameters.ts";

type Role = "user" | "assistant" | "tool";

/** Collects the messages of a conversation that a client sends, in the form that agents accept. */
export class ClientHistory {
  readonly #messages: { readonly role: Role; readonly content: readonly JsonValue[] }[] = [];
  readonly #names = new Map<string, string>();
  /** The places of the calls that have no output yet, by the ids of the calls. */
  readonly #open = new Map<string, string>();

  addUser(parts: readonly UserPart[]): void {
    this.#messages.push({ role: "user", content: parts as unknown as readonly JsonValue[] });
  }

  addText(text: string): void {
    if (text !== "") this.#add("assistant", { type: "text", text });
  }

  /** Adds a call. Throws `invalid_argument` if its arguments are not an object in JSON. */
  addCall(
    { callId, name, written }: { readonly [Name in "callId" | "name" | "written"]: JsonValue | undefined },
    place: string,
  ): void {
    const input = typeof written === "string" ? parsed(written) : undefined;
    if (typeof callId !== "string" || callId === "" || typeof name !== "string" || !isObject(input))
      throw invalidParameter(
        place,
        `invalid ${place}: expected a call with its id, the name of the function, and its arguments as an object in JSON`,
      );
    this.#names.set(callId, name);
    this.#open.set(callId, place);
    this.#add("assistant", { type: "tool_call", callId, toolName: name, input });
  }

  /** Adds the output of a call. Throws `invalid_argument` if the call is not in the conversation. */
  addOutput(callId: string, text: string, place: string): void {
    const toolName = this.#names.get(callId);
    if (toolName === undefined)
      throw invalidParameter(
        place,
        `invalid ${place}: no call before it has the id ${JSON.stringify(callId.slice(0, 100))}; send the call as well`,
      );
    this.#open.delete(callId);
    const output = { type: "text", text };
    this.#add("tool", { type: "tool_result", callId, toolName, output, isError: false });
  }

  /** The conversation as the input of an agent. `param` names the parameter of the request. */
  toInput(param: string): JsonValue {
    const [[callId, place] = []] = this.#open;
    if (callId !== undefined && place !== undefined)
      throw invalidParameter(
        place,
        `invalid ${place}: the request has no output of call ${JSON.stringify(callId.slice(0, 100))}; send it, or remove the call`,
      );
    const [only, ...others] = this.#messages;
    if (only === undefined || this.#messages.at(-1)?.role !== "user")
      throw invalidParameter(
        param,
        `invalid ${param}: the last one must be a message of the user, or the output of a call that waits for it`,
      );
    return others.length > 0 ? this.#messages : inputOf(only.content as unknown as readonly UserPart[]);
  }

  /** Adds a part to the last message, if that has the role, because providers refuse a call that is apart from its output. */
  #add(role: Role, part: JsonObject): void {
    const last = this.#messages.at(-1);
    if (last?.role === role)
      this.#messages[this.#messages.length - 1] = { role, content: [...last.content, part] };
    else this.#messages.push({ role, content: [part] });
  }
}

/** The parts of a user as an input: one text alone is a text. */
export function inputOf(parts: readonly UserPart[]): JsonValue {
  const [only, ...others] = parts;
  return others.length === 0 && only?.type === "text" ? only.text : (parts as unknown as JsonValue);
}

function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

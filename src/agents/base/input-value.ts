import {
  describeValue,
  Fault,
  type JsonObject,
  type JsonSchema,
  type JsonValue,
} from "../../kernel/index.ts";

/** Checks values of a schema. */
export interface ValueReader {
  readonly jsonSchema: JsonSchema;
  /** Validates a value. Rejects with a fault that says what does not match. */
  parse(value: JsonValue): unknown;
}

/**
 * Handles the input of an agent with an input schema: an object that matches the schema. A run stores it as a
 * request whose prompt is the object as JSON, so that it is a message of the conversation, together with the object
 * itself.
 */
export class InputValue {
  readonly #name: string;
  readonly #reader: ValueReader;

  constructor(name: string, reader: ValueReader) {
    this.#name = name;
    this.#reader = reader;
    const { type } = reader.jsonSchema;
    if (type !== "object")
      throw new Fault(
        "invalid_argument",
        `invalid input of agent ${name}: expected a schema of an object, not of ${describeValue(type ?? "anything")}; use a schema with the type "object"`,
      );
  }

  get schema(): JsonSchema {
    return this.#reader.jsonSchema;
  }

  /**
   * Returns the input that a run stores. It accepts the object, `{ value: object }`, and a value that it has
   * returned before.
   */
  async accept(input: JsonValue): Promise<JsonValue> {
    if (!isObject(input)) throw this.#refused(`expected an object, not ${describeValue(input)}`);
    if (isContinuation(input)) return input;
    const { value, prompt, ...request } = input;
    const isStored = value !== undefined && prompt === promptOf(value);
    const isWrapped = isObject(value) && Object.keys(input).length === 1 && !this.#declares("value");
    const given = isStored || isWrapped ? value : input;
    await this.#reader.parse(given);
    return { ...(isStored && request), prompt: promptOf(given), value: given };
  }

  #declares(name: string): boolean {
    const { properties } = this.schema;
    return isObject(properties ?? null) && name in (properties as JsonObject);
  }

  #refused(problem: string): Fault {
    const required = this.schema["required"];
    const names = Array.isArray(required) && required.length > 0 ? ` with ${required.join(", ")}` : "";
    return new Fault(
      "invalid_argument",
      `invalid input of agent ${this.#name}: ${problem}; pass an object${names}, as the input schema of the agent says`,
    );
  }
}

/** Whether the input continues a session without a message (`Agent.continue`). */
function isContinuation(input: JsonObject): boolean {
  return input["continue"] === true && input["prompt"] === undefined && input["value"] === undefined;
}

/** What the model sees of a value. */
function promptOf(value: JsonValue): string {
  return JSON.stringify(value, null, 2);
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && value !== undefined && !Array.isArray(value);
}

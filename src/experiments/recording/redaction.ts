import {
  withoutSecretsIn,
  type JsonSchema,
  type JsonValue,
  type ToolResult,
  type ToolSpec,
} from "../../kernel/index.ts";

/** Names of the members whose values are secret, by the tool that marks them. */
export type SecretFields = Readonly<Record<string, readonly string[]>>;

/** Number of removed secrets, by the place where they were. The secrets themselves are not contained. */
export type RedactionCounts = Readonly<Record<string, number>>;

const mark = "[secret]";
/**
 * Minimum length of a secret that is also removed from other texts that quote it. A shorter secret would match
 * ordinary words.
 */
const quotableLength = 6;

/**
 * Removes secrets from values: what the redaction of errors recognises, the fields that tools mark as secret, and
 * other quotes of the values of these fields. Data that a provider needs unchanged (`providerMetadata`, data of
 * images and files) are kept. A second application changes nothing.
 */
export class Redaction {
  readonly #fields: SecretFields;
  readonly #values: readonly string[];
  readonly #counts = new Map<string, number>();

  constructor(fields: SecretFields, values: Iterable<string> = []) {
    this.#fields = fields;
    // A longer value may contain a shorter one.
    this.#values = [...new Set(values)].toSorted((one, other) => other.length - one.length);
  }

  get counts(): RedactionCounts {
    return Object.fromEntries(this.#counts);
  }

  /** Returns the value without secrets. `place` is the name under which they are counted in `counts`. */
  in<Value>(value: Value, place = ""): Value {
    return this.#walk(value as JsonValue, "", place, undefined) as Value;
  }

  /** The arguments of a call without secrets. */
  inArguments(toolName: string, input: JsonValue): JsonValue {
    return this.#walk(input, "", "", this.#fields[toolName]);
  }

  #walk(value: JsonValue, name: string, place: string, secret: readonly string[] | undefined): JsonValue {
    if (secret?.includes(name) === true && value !== null && value !== mark) {
      this.#count(place, 1);
      return mark;
    }
    if (typeof value === "string") return this.#text(value, name, place);
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value))
      return (value as readonly JsonValue[]).map((each) => this.#walk(each, "", place, secret));
    const members = value as Readonly<Record<string, JsonValue>>;
    const toolName = members["toolName"];
    const own = typeof toolName === "string" ? this.#fields[toolName] : undefined;
    const entries = Object.entries(members).map(([key, each]): readonly [string, JsonValue] => [
      key,
      isKept(key, members)
        ? each
        : this.#walk(each, key, place, own !== undefined && isOfCall(key) ? own : secret),
    ]);
    return Object.fromEntries(entries);
  }

  #text(text: string, name: string, place: string): string {
    let left = text;
    for (const value of this.#values) left = left.replaceAll(value, mark);
    // The name of a member says whether its text is a credential.
    const { [name]: shown } = withoutSecretsIn({ [name]: left }) as Readonly<Record<string, string>>;
    const cleaned = shown ?? left;
    if (cleaned !== text) this.#count(place, Math.max(1, marksIn(cleaned) - marksIn(text)));
    return cleaned;
  }

  #count(place: string, secrets: number): void {
    this.#counts.set(place, (this.#counts.get(place) ?? 0) + secrets);
  }
}

/** The fields that tools mark as secret, in their schemas or in the metadata of their results. */
export function secretFields(
  calls: readonly { readonly toolName: string; readonly result: ToolResult }[],
  tools: readonly ToolSpec[],
): SecretFields {
  const fields = new Map<string, Set<string>>();
  const add = (toolName: string, names: Iterable<string>): void => {
    const known = fields.get(toolName) ?? new Set<string>();
    for (const name of names) known.add(name);
    if (known.size > 0) fields.set(toolName, known);
  };
  for (const { toolName, result } of calls) {
    const marked = result.metadata?.["secret"];
    if (Array.isArray(marked))
      add(
        toolName,
        marked.filter((each) => typeof each === "string"),
      );
  }
  for (const { name, inputSchema } of tools) add(name, secretProperties(inputSchema));
  return Object.fromEntries([...fields].map(([name, names]) => [name, [...names]]));
}

/** The values of secret fields in the arguments and results of calls. */
export function* secretValues(
  calls: readonly { readonly toolName: string; readonly input: JsonValue; readonly result: ToolResult }[],
  fields: SecretFields,
): Iterable<string> {
  for (const { toolName, input, result } of calls) {
    const names = fields[toolName];
    if (names === undefined) continue;
    for (const value of [input, result.output as unknown as JsonValue]) yield* valuesUnder(value, names);
  }
}

function* valuesUnder(value: JsonValue, names: readonly string[], isSecret = false): Iterable<string> {
  if (typeof value === "string" || typeof value === "number") {
    const text = String(value);
    if (isSecret && text.length >= quotableLength && text !== mark) yield text;
  } else if (Array.isArray(value)) {
    for (const each of value as readonly JsonValue[]) yield* valuesUnder(each, names, isSecret);
  } else if (typeof value === "object" && value !== null) {
    for (const [name, each] of Object.entries(value as Readonly<Record<string, JsonValue>>))
      yield* valuesUnder(each, names, isSecret || names.includes(name));
  }
}

/** The properties of a schema that JSON Schema calls write-only, or whose format is a password. */
function* secretProperties(schema: JsonSchema): Iterable<string> {
  const { properties = {}, items } = schema as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly items?: JsonSchema;
  };
  for (const [name, property] of Object.entries(properties)) {
    if (typeof property !== "object" || property === null) continue;
    if (property["writeOnly"] === true || property["format"] === "password") yield name;
    yield* secretProperties(property);
  }
  if (typeof items === "object" && items !== null) yield* secretProperties(items);
}

/** Whether a member of a call or of its result contains arguments or a result. */
function isOfCall(name: string): boolean {
  return name === "input" || name === "output" || name === "result";
}

/** Whether a provider needs a member unchanged. */
function isKept(name: string, { type, kind, provider }: Readonly<Record<string, JsonValue>>): boolean {
  if (name === "providerMetadata") return true;
  if (name === "data") return kind === "base64" || (type === "opaque" && provider !== undefined);
  return false;
}

function marksIn(text: string): number {
  return text.split(mark).length - 1;
}

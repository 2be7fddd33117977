import {
  Fault,
  type JsonObject,
  type JsonValue,
  type Tool,
  type ToolConcurrency,
  type ToolContext,
  type ToolResult,
} from "../../kernel/index.ts";

interface TextArgument {
  readonly description: string;
  /** The allowed values. If absent, any text is allowed. */
  readonly choices?: readonly string[];
  readonly optional?: boolean;
}

export interface OwnToolOptions<Name extends string> {
  readonly name: string;
  readonly description: string;
  readonly input: Readonly<Record<Name, TextArgument>>;
  /** Whether the tool waits for other agents and therefore has no timeout. */
  readonly suspends?: boolean;
  readonly concurrency?: ToolConcurrency;
  readonly execute: (
    input: Readonly<Record<Name, string>>,
    context: ToolContext,
  ) => ToolResult | Promise<ToolResult>;
}

/**
 * Creates a tool that an architecture adds to the agent. Its arguments are texts. An optional argument that is
 * missing becomes an empty text.
 */
export function ownTool<Name extends string>(
  options: OwnToolOptions<Name>,
): Tool<Readonly<Record<Name, string>>> {
  const { name, description, input, suspends = false, concurrency = "parallel", execute } = options;
  const entries = Object.entries<TextArgument>(input);
  return {
    name,
    description,
    inputSchema: schemaOf(entries),
    risk: "safe",
    destructive: false,
    edits: false,
    concurrency,
    timeoutMs: null,
    suspends,
    needsApproval: () => false,
    parse: (given) => {
      const problems = problemsOf(entries, given);
      if (problems.length > 0) {
        throw new Fault(
          "invalid_argument",
          `invalid arguments of ${name}: ${problems.join("; ")}. Correct them and call the tool again`,
        );
      }
      const values = entries.map(([key]) => [key, (given as JsonObject)[key] ?? ""]);
      return Object.fromEntries(values) as Record<Name, string>;
    },
    execute: async (parsed, context) => execute(parsed, context),
  };
}

export function said(text: string, metadata?: JsonObject): ToolResult {
  return { output: { type: "text", text }, isError: false, ...(metadata && { metadata }) };
}

export function refusal(text: string, metadata?: JsonObject): ToolResult {
  return { ...said(text, metadata), isError: true };
}

function schemaOf(entries: readonly (readonly [string, TextArgument])[]): JsonObject {
  const properties = entries.map(([key, { description, choices }]) => [
    key,
    { type: "string", description, ...(choices && { enum: choices }) },
  ]);
  return {
    type: "object",
    properties: Object.fromEntries(properties) as JsonObject,
    required: entries.flatMap(([key, { optional = false }]) => (optional ? [] : [key])),
    additionalProperties: false,
  };
}

function problemsOf(
  entries: readonly (readonly [string, TextArgument])[],
  given: JsonValue,
): readonly string[] {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return ["they must be an object"];
  const values = given as JsonObject;
  return entries.flatMap(([key, { choices, optional = false }]) => {
    const value = values[key];
    if (value === undefined || value === null) return optional ? [] : [`${key} is missing`];
    if (typeof value !== "string") return [`${key} must be a text`];
    if (!optional && value === "") return [`${key} is empty`];
    return choices === undefined || choices.includes(value)
      ? []
      : [`${key} must be one of ${choices.join(", ")}`];
  });
}

import {
  Fault,
  type Infer,
  type JsonValue,
  type Schema,
  type Tool,
  type ToolConcurrency,
  type ToolContext,
  type ToolOutput,
  type ToolResult,
  type ToolRisk,
} from "../../kernel/index.ts";
import { schemaReader, toolSchema } from "./schema-reader.ts";

/** What a body may return: a text, JSON, nothing, or a whole result. */
export type ToolReturn = JsonValue | ToolResult | undefined | void;

export interface ToolOptions<Input extends Schema> {
  readonly name: string;
  readonly description: string;
  /** Any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema written `as const`. */
  readonly input: Input;
  readonly risk?: ToolRisk;
  /** Unless told, only a tool of risk `safe` counts as harmless. */
  readonly destructive?: boolean;
  /** It edits files and does nothing else; permissions in the mode `acceptEdits` let it through. */
  readonly edits?: boolean;
  readonly concurrency?: ToolConcurrency;
  readonly timeoutMs?: number | null;
  readonly suspends?: boolean;
  readonly needsApproval?: boolean | ((input: Infer<Input>) => boolean | Promise<boolean>);
  readonly execute: (input: Infer<Input>, context: ToolContext) => Promise<ToolReturn> | ToolReturn;
}

/** What every provider takes. */
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/** Makes a tool of a schema and a body. The types of the input follow from the schema. */
export function tool<const Input extends Schema>(options: ToolOptions<Input>): Tool<Infer<Input>> {
  const { name, description, risk = "safe", suspends = false, needsApproval = false } = options;
  if (!validName.test(name)) {
    throw new Fault(
      "invalid_argument",
      `${JSON.stringify(name)} is not a tool name: it must be 1 to 64 letters, digits, and _ -, starting with a letter or _`,
    );
  }
  const { timeoutMs = 120_000 } = options;
  if (timeoutMs !== null && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    throw new Fault(
      "invalid_argument",
      `timeoutMs of tool ${name} is ${timeoutMs}: it must be above 0, or null for none`,
    );
  }
  const { jsonSchema, parse } = schemaReader<Infer<Input>>(toolSchema(name), options.input);
  return Object.freeze({
    name,
    description,
    inputSchema: jsonSchema,
    risk,
    destructive: options.destructive ?? risk !== "safe",
    edits: options.edits ?? false,
    concurrency: options.concurrency ?? "parallel",
    timeoutMs: suspends ? null : timeoutMs,
    suspends,
    needsApproval: (input: Infer<Input>) =>
      typeof needsApproval === "function" ? needsApproval(input) : needsApproval,
    parse,
    execute: async (input: Infer<Input>, context: ToolContext) =>
      toolResult(await options.execute(input, context)),
  });
}

function toolResult(value: ToolReturn): ToolResult {
  return isResult(value) ? value : { output: toolOutput(value ?? ""), isError: false };
}

function toolOutput(value: JsonValue): ToolOutput {
  return typeof value === "string" ? { type: "text", text: value } : { type: "json", value };
}

function isResult(value: ToolReturn): value is ToolResult {
  if (typeof value !== "object" || value === null || !("output" in value) || !("isError" in value))
    return false;
  const { output, isError } = value;
  return typeof isError === "boolean" && typeof output === "object" && output !== null && "type" in output;
}

import {
  Fault,
  type Infer,
  type JsonValue,
  type Schema,
  type Tool,
  type ToolConcurrency,
  type ToolContext,
  type ToolResult,
  type ToolRisk,
} from "../../kernel/index.ts";
import { coerceInput } from "./coercion.ts";
import { SchemaReader, toolSchema } from "./schema-reader.ts";
import { runBody, type ToolBody } from "./tool-body.ts";

export interface ToolOptions<Input extends Schema> {
  readonly name: string;
  readonly description: string;
  /** Any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema written `as const`. */
  readonly inputSchema: Input;
  readonly risk?: ToolRisk;
  /** Unless told, only a tool of risk `safe` that edits nothing counts as harmless. */
  readonly destructive?: boolean;
  /** It edits files and does nothing else; permissions in the mode `acceptEdits` let it through. */
  readonly edits?: boolean;
  readonly concurrency?: ToolConcurrency;
  readonly timeoutMs?: number | null;
  readonly suspends?: boolean;
  readonly needsApproval?: boolean | ((input: Infer<Input>) => boolean | Promise<boolean>);
  /** Returns the result; an async generator yields progress on the way. */
  readonly execute: ToolBody<Infer<Input>>;
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
  if (!("inputSchema" in options)) {
    throw new Fault(
      "invalid_argument",
      "input" in options
        ? `invalid option "input" of tool ${name}: the schema of a tool is named inputSchema; use tool({ inputSchema: ... })`
        : `tool ${name} has no inputSchema; use a Standard Schema such as z.object({ ... }), or a JSON Schema`,
    );
  }
  const { timeoutMs = 120_000, edits = false, concurrency = "parallel" } = options;
  assertOneOf(name, "risk", risk, risks);
  assertOneOf(name, "concurrency", concurrency, concurrencies);
  if (timeoutMs !== null && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    throw new Fault(
      "invalid_argument",
      `timeoutMs of tool ${name} is ${timeoutMs}: it must be above 0, or null for none`,
    );
  }
  const reader = new SchemaReader<Infer<Input>>(toolSchema(name), options.inputSchema, coerceInput);
  const { jsonSchema } = reader;
  return Object.freeze({
    name,
    description,
    inputSchema: jsonSchema,
    risk,
    destructive: options.destructive ?? (risk !== "safe" || edits),
    edits,
    concurrency,
    timeoutMs: suspends ? null : timeoutMs,
    suspends,
    needsApproval: asksFor,
    coerce: coerced,
    parse: parsed,
    execute: executed,
    [made]: { name, reader, body: options.execute, needsApproval },
  } satisfies MadeTool<Infer<Input>>);
}

/** What a tool is made of: under a symbol, so that who spreads a tool to change something of it has it too. */
const made = Symbol("made");

interface MadeTool<Input> extends Tool<Input> {
  readonly [made]: {
    readonly name: string;
    readonly reader: SchemaReader<Input>;
    readonly body: ToolBody<Input>;
    readonly needsApproval: boolean | ((input: Input) => boolean | Promise<boolean>);
  };
}

// The same functions for all tools: what was compiled for one is good for the next.

function asksFor<Input>(this: MadeTool<Input>, input: Input): boolean | Promise<boolean> {
  const { needsApproval } = this[made];
  return typeof needsApproval === "function" ? needsApproval(input) : needsApproval;
}

function coerced(this: MadeTool<unknown>, input: JsonValue): JsonValue {
  return coerceInput(this[made].reader.jsonSchema, input);
}

function parsed<Input>(this: MadeTool<Input>, input: JsonValue): Input | Promise<Input> {
  return this[made].reader.parse(input);
}

function executed<Input>(this: MadeTool<Input>, input: Input, context: ToolContext): Promise<ToolResult> {
  const { name, body } = this[made];
  return runBody(name, body, input, context);
}

const risks: readonly string[] = ["safe", "high", "critical"] satisfies ToolRisk[];
const concurrencies: readonly string[] = ["parallel", "sequential"] satisfies ToolConcurrency[];

/** What is misspelt must not pass for harmless. */
function assertOneOf(name: string, option: string, value: string, known: readonly string[]): void {
  if (known.includes(value)) return;
  throw new Fault(
    "invalid_argument",
    `${option} of tool ${name} is ${JSON.stringify(value)}: it must be one of ${known.join(", ")}`,
  );
}

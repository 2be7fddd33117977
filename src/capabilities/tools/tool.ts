import { errorResult, toolOutput } from "./tool-result.ts";
import {
  Fault,
  type Infer,
  type JsonSchema,
  type JsonValue,
  type Schema,
  type Tool,
  type ToolConcurrency,
  type ToolContext,
  type ToolResult,
  type ToolRisk,
  describeValue,
  nearestJson,
  is,
  optionTable,
  spelledAs,
  type OptionKind,
  type OptionKinds,
} from "../../kernel/index.ts";
import { coerceInput } from "./coercion.ts";
import { SchemaReader, toolSchema } from "./schema-reader.ts";
import { runBody, type ToolBody } from "./tool-body.ts";

/**
 * Returns the body of a client-side tool: it waits durably until `RunHandle.toolResult` sends the result of the
 * call. The time of the wait does not count for the task's deadline. The value is the whole output, even if it
 * looks like a result, because the program that sends it must not control the run.
 */
function clientBody(
  toolName: string,
): (input: unknown, context: Pick<ToolContext, "ctx" | "callId">) => Promise<ToolResult> {
  return async (input, { ctx, callId }) => {
    const decision = await ctx.approval({
      kind: "client_tool",
      toolName,
      callId,
      input: nearestJson(input),
      reason: `${toolName} is executed by the client`,
    });
    if (decision.decision === "approved")
      return { output: toolOutput(decision.input ?? null), isError: false };
    if (decision.decision === "skipped") return errorResult("[skipped by the client]");
    return errorResult(decision.reason ?? "the client did not execute the call");
  };
}

/** Options of every tool. */
interface CommonToolOptions<Input extends Schema> {
  /** Name by which the model calls the tool: 1 to 64 letters, digits, `_` and `-`, starting with a letter or `_`. */
  readonly name: string;
  /** Text by which the model decides when to call the tool. */
  readonly description: string;
  /**
   * Schema of the arguments: any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON
   * Schema written `as const`. Its transforms must be pure: the arguments are parsed before rules and people judge
   * them, and again when another process takes over the call.
   */
  readonly inputSchema: Input;
  /** How much damage a mistaken call can do. Default: `safe`. */
  readonly risk?: ToolRisk;
  /** Whether the tool may change or delete data. Default: `true` if `risk` is not `safe` or `edits` is set. */
  readonly destructive?: boolean;
  /** Whether the tool only edits files. Permissions in the mode `acceptEdits` allow such calls. Default: `false`. */
  readonly edits?: boolean;
  /** How calls of the tool run relative to other calls of the same turn. Default: `parallel`. */
  readonly concurrency?: ToolConcurrency;
  /**
   * Whether a child that shares its parent's prompt may call the tool: `never`, or only if the child's option
   * `tools` names it (`listed`). If absent, the child may call it.
   */
  readonly inChildren?: "never" | "listed";
  /**
   * Whether a call needs a person's approval. May be a function that decides this from the input. Default: `false`.
   */
  readonly needsApproval?: boolean | ((input: Infer<Input>) => boolean | Promise<boolean>);
  /**
   * Returns what a call reaches, such as a host, or `null` if this needs no approval. Permissions ask once for each
   * value. If absent, the value is `null` for every call.
   */
  readonly approvalScope?: (input: Infer<Input>) => string | null;
  /**
   * Whether the result of a call is the answer of the agent, without another model call. An error is shown to the model
   * instead. Default: `false`.
   */
  readonly returnDirect?: boolean;
  /**
   * Names of members of the arguments and of the result, at any depth, whose values are secret. They are left out
   * when a case for experiments is made from a stored run. The journal of the run contains them. Default: none.
   */
  readonly secret?: readonly string[];
}

/** Options of `tool()` for a tool that the run executes. */
export interface ToolOptions<Input extends Schema, Context = unknown> extends CommonToolOptions<Input> {
  /** A tool with a body is executed by the run. */
  readonly clientSide?: false;
  /** Maximum duration of a call, in milliseconds. `null` means unlimited. Default: 120_000. */
  readonly timeoutMs?: number | null;
  /** Whether the body waits durably, for a person or another agent. Such a call has no timeout. Default: `false`. */
  readonly suspends?: boolean;
  /**
   * Body of the tool: returns the result. An async generator yields progress updates and returns the result. A tool that
   * uses the context of the run declares its type: `execute: (input, { context }: ToolContext<Shop>) => ...`.
   */
  readonly execute: ToolBody<Infer<Input>, Context>;
}

/** Options of `tool()` for a tool that a program outside the run executes, such as the page of a user. */
export interface ClientToolOptions<Input extends Schema> extends CommonToolOptions<Input> {
  /**
   * Marks a client-side tool. A call waits durably, under its call id, until `RunHandle.toolResult` sends the
   * result. The time of the wait does not count for the task's deadline.
   */
  readonly clientSide: true;
  /** A client-side tool has no body. */
  readonly execute?: never;
  /** A client-side tool has no timeout: the run waits until the result arrives or the run is cancelled. */
  readonly timeoutMs?: never;
  readonly suspends?: never;
}

const knownOptions = optionTable(
  {
    name: is.any,
    description: is.text({ required: true, hint: "it tells the model when to call the tool" }),
    inputSchema: is.any,
    // A misspelt risk must not count as harmless.
    risk: is.choice(["safe", "high", "critical"], { default: "safe" }),
    destructive: is.boolean(),
    edits: is.boolean({ default: false }),
    concurrency: is.choice(["parallel", "sequential"], { default: "parallel" }),
    inChildren: is.choice(["never", "listed"]),
    timeoutMs: is.number({ above: 0, finite: true, or: [null, "no limit"], default: 120_000 }),
    suspends: is.boolean(),
    needsApproval: is.any,
    approvalScope: is.callback(),
    execute: is.any,
    clientSide: is.boolean({ default: false }),
    returnDirect: is.boolean(),
    secret: is.list({ of: is.text({ empty: false }) }),
  } satisfies OptionKinds<ToolOptions<Schema> | ClientToolOptions<Schema>>,
  ofResult,
);

/** Returns what to do with an option for the schema of a result, which other libraries have. */
function ofResult(option: string): string | undefined {
  return spelledAs(option, ["output", "outputSchema", "outputType", "responseFormat"]) === undefined
    ? undefined
    : "omit it, because the result of a tool has no schema; say in `description` what the tool returns";
}

/** Option kind of the maximum duration of a call. The documentation of the option says what `null` means. */
export function durationKind(ms: number): OptionKind<number | null> & { readonly default: number } {
  return is.number({ from: 0, or: [null, "no limit of its own"], default: ms });
}

/** Tool names that every provider accepts. */
const validName = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

/**
 * Creates a tool from a schema and a function. The type of the function's input follows from the schema.
 *
 * @example
 * ```ts
 * import { tool } from "reeve";
 *
 * const weather = tool({
 *   name: "weather",
 *   description: "Return the current temperature of a city",
 *   inputSchema: {
 *     type: "object",
 *     properties: { city: { type: "string" } },
 *     required: ["city"],
 *     additionalProperties: false,
 *   } as const,
 *   execute: async ({ city }, { signal }) => {
 *     const response = await fetch(`https://weather.example/${encodeURIComponent(city)}`, { signal });
 *     return response.text();
 *   },
 * });
 * ```
 */
export function tool<const Input extends Schema, Context = unknown>(
  options: ToolOptions<Input, Context> | ClientToolOptions<Input>,
): Tool<Infer<Input>, Context> {
  const { name } = options;
  if (typeof name !== "string" || !validName.test(name)) {
    throw new Fault(
      "invalid_argument",
      `invalid tool name ${JSON.stringify(name)}: expected 1 to 64 letters, digits, _ or -, starting with a letter or _`,
    );
  }
  const {
    description,
    risk,
    edits,
    concurrency,
    timeoutMs,
    clientSide,
    needsApproval = false,
    suspends = clientSide,
    secret = [],
  } = knownOptions.read(`tool ${name}`, options);
  if (options.inputSchema === undefined) {
    throw new Fault(
      "invalid_argument",
      `tool ${name} has no inputSchema; use a Standard Schema such as z.object({ ... }), or a JSON Schema`,
    );
  }
  const body = bodyOf(options);
  const reader = new SchemaReader<Infer<Input>>(toolSchema(name), options.inputSchema, coerceInput);
  const { jsonSchema } = reader;
  requireObjectSchema(name, jsonSchema);
  return Object.freeze({
    name,
    description,
    inputSchema: jsonSchema,
    risk,
    destructive: options.destructive ?? (risk !== "safe" || edits),
    edits,
    concurrency,
    ...(options.inChildren && { inChildren: options.inChildren }),
    timeoutMs: suspends ? null : timeoutMs,
    suspends,
    needsApproval: approvalNeeded,
    ...(options.approvalScope && { approvalScope: options.approvalScope }),
    coerce: coerced,
    parse: parsed,
    execute: executed,
    [toolParts]: { name, reader, body, needsApproval, returnDirect: options.returnDirect === true, secret },
  } satisfies CreatedTool<Infer<Input>, Context>);
}

/** The types of JSON Schema, without `object`. */
const otherTypes: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "array", "null"]);

/** Throws for a schema whose values are not objects, because providers send the arguments of a call as an object. */
function requireObjectSchema(name: string, { type }: JsonSchema): void {
  const types = [type ?? "object"].flat().map((each) => (typeof each === "string" ? each : ""));
  if (!types.every((each) => otherTypes.has(each))) return;
  throw new Fault(
    "invalid_argument",
    `invalid inputSchema of tool ${name}: arguments are an object, not of type ${types.join(" or ")}; use z.object({ value: ... })`,
  );
}

/** Returns the body of a tool. Throws for a tool without a body, and for a client-side tool with options of a body. */
function bodyOf<Input extends Schema, Context>(
  options: ToolOptions<Input, Context> | ClientToolOptions<Input>,
): ToolBody<Infer<Input>, Context> {
  const { name } = options;
  if (options.clientSide === true) {
    for (const option of ["execute", "timeoutMs", "suspends"] as const)
      if (options[option] !== undefined)
        throw new Fault(
          "invalid_argument",
          `invalid option ${option} of tool ${name}: the client executes a tool with clientSide: true; remove ${option}`,
        );
    return clientBody(name);
  }
  const execute: unknown = options.execute;
  if (typeof execute === "function") return options.execute;
  throw new Fault(
    "invalid_argument",
    execute === undefined
      ? `tool ${name} has no execute; add the function that executes a call: tool({ execute: async (input, context) => ... }), or clientSide: true if another program executes it`
      : `invalid execute ${describeValue(execute)} of tool ${name}: expected a function; use tool({ execute: async (input, context) => ... })`,
  );
}

/**
 * Key under which a tool stores its parts. It is a symbol, which is copied when a caller spreads a tool to change
 * one of its fields.
 */
const toolParts = Symbol("made");

interface CreatedTool<Input, Context = unknown> extends Tool<Input, Context> {
  readonly [toolParts]: {
    readonly name: string;
    readonly reader: SchemaReader<Input>;
    readonly body: ToolBody<Input, Context>;
    readonly returnDirect: boolean;
    readonly secret: readonly string[];
    readonly needsApproval: boolean | ((input: Input) => boolean | Promise<boolean>);
  };
}

// All tools share these functions, so that V8 compiles them once for all tools.

function approvalNeeded<Input>(this: CreatedTool<Input>, input: Input): boolean | Promise<boolean> {
  const { needsApproval } = this[toolParts];
  return typeof needsApproval === "function" ? needsApproval(input) : needsApproval;
}

function coerced(this: CreatedTool<unknown>, input: JsonValue): JsonValue {
  return coerceInput(this[toolParts].reader.jsonSchema, input);
}

function parsed<Input>(this: CreatedTool<Input>, input: JsonValue): Input | Promise<Input> {
  return this[toolParts].reader.parse(input);
}

function executed<Input>(this: CreatedTool<Input>, input: Input, context: ToolContext): Promise<ToolResult> {
  const { name, body, returnDirect, secret } = this[toolParts];
  const begun = runBody(name, body, input, context);
  const running = secret.length === 0 ? begun : begun.then((result) => withSecret(result, secret));
  return returnDirect ? running.then(asAnswer) : running;
}

/** Adds to a result which of its members are secret, so that a reader of the journal knows this without the tool. */
function withSecret(result: ToolResult, secret: readonly string[]): ToolResult {
  return { ...result, metadata: { ...result.metadata, secret } };
}

/** Makes a result the answer of the agent. An error result stays a result for the model. */
function asAnswer(result: ToolResult): ToolResult {
  return result.isError ? result : { ...result, terminate: "answer" };
}

import { JsonSchemaCheck, SchemaReader } from "../capabilities/index.ts";
import {
  changedResult,
  Fault,
  jsonText,
  type Infer,
  type JsonSchema,
  type JsonValue,
  type RunResult,
  type RunStatus,
  type Schema,
} from "../kernel/index.ts";

/** The result type of a run with an output schema, or of a run without one if `Source` is `never`. */
export type AnswerOf<Source extends Schema> = [Source] extends [never]
  ? RunResult
  : ValueResult<Infer<Source>>;

/** The result of a run with an output schema. `output` has the schema's type only if the run completed. */
export type ValueResult<Value> =
  | (Omit<RunResult<Value>, "status"> & { readonly status: "completed" })
  | (Omit<RunResult, "status"> & { readonly status: Exclude<RunStatus, "completed"> });

/**
 * Returns the options of a call with the schema of the output as a JSON Schema, and the function that gives a result its
 * type.
 */
export function shaped<Options extends { readonly output?: Schema | undefined }>(
  options: Options,
): {
  readonly request: Omit<Options, "output"> & { readonly output?: JsonSchema };
  readonly shape: (result: RunResult<JsonValue>) => RunResult | Promise<RunResult<unknown>>;
} {
  const { output, ...rest } = options;
  if (output === undefined) return { request: rest, shape: textual };
  const reader = outputReader(output);
  const shape = (result: RunResult<JsonValue>): Promise<RunResult<unknown>> => valued(result, reader);
  return { request: { ...rest, output: reader.jsonSchema }, shape };
}

/** Returns a reader that checks an answer with the caller's schema. */
export function outputReader(schema: Schema): SchemaReader<unknown> {
  return new SchemaReader({ schemaName: "the schema of the output", refuse: refusedAnswer }, schema);
}

/** Returns a reader for the values that an agent accepts as its input. */
export function inputReader(agent: string, schema: Schema): SchemaReader<unknown> {
  const refuse = (problems: readonly string[]): Fault =>
    new Fault(
      "invalid_argument",
      `invalid input of agent ${agent}: ${problems.join("; ")}; pass an object that matches the input schema of the agent`,
      { details: { agent, problems } },
    );
  return new SchemaReader({ schemaName: `the input schema of agent ${agent}`, refuse }, schema);
}

function refusedAnswer(problems: readonly string[]): Fault {
  return new Fault("model_format_error", `the answer does not match its schema: ${problems.join("; ")}`);
}

/**
 * Applies the checks that JSON Schema cannot express. The answer is already paid at this time, so a mismatch
 * results in a failed result, not in an exception.
 */
async function valued(
  result: RunResult<JsonValue>,
  reader: SchemaReader<unknown>,
): Promise<RunResult<unknown>> {
  if (result.status !== "completed") return textual(result);
  try {
    return changedResult(result, { output: await reader.parse(result.output) });
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code !== "model_format_error") throw error;
    const { message: interruptionReason } = fault;
    const failed = { status: "failed", interruptionReason, error: fault.toJSON() } as const;
    return changedResult(textual(result), failed);
  }
}

/** The result with its output as a text. */
export function textual(result: RunResult<JsonValue>): RunResult {
  const { output } = result;
  if (typeof output === "string") return result as RunResult;
  return changedResult(result, { output: jsonText(output) });
}

/** Compiled validators, one per schema. */
const checks = new WeakMap<JsonSchema, JsonSchemaCheck>();

/** Returns one message for each problem of a value. The validator of a schema is compiled only once. */
export function schemaProblems(
  schema: JsonSchema,
  value: JsonValue,
): readonly string[] | Promise<readonly string[]> {
  let check = checks.get(schema);
  if (check === undefined) {
    check = new JsonSchemaCheck("the schema that was given", schema);
    checks.set(schema, check);
  }
  return check.problems(value);
}

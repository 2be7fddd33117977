import type { Ajv, ValidateFunction } from "ajv";
import {
  copyJson,
  Fault,
  formatIssue,
  type JsonSchema,
  type JsonValue,
  type Schema,
  type StandardSchema,
} from "../../kernel/index.ts";

/** A tool's schema as it is used: what the model is told, and how its answer is checked. */
export interface SchemaReader<Value> {
  readonly jsonSchema: JsonSchema;
  /** T1: rejects with `invalid_argument`, telling the model what to mend. */
  readonly parse: (input: JsonValue) => Value | Promise<Value>;
}

/** Whose schema it is, in words: `the input schema of tool look`. */
export interface SchemaOwner {
  readonly schemaName: string;
  readonly refuse: (problems: readonly string[]) => Fault;
}

/** What was meant by a value that does not fit; the same where nothing can be made of it. */
type Coercion = (schema: JsonSchema, input: JsonValue) => JsonValue;

export function schemaReader<Value>(
  owner: SchemaOwner,
  schema: Schema,
  coercion: Coercion = unchanged,
): SchemaReader<Value> {
  const { jsonSchema, read } = isStandard(schema)
    ? readStandard<Value>(owner, schema)
    : readJsonSchema<Value>(owner, schema);
  const parsed = (input: JsonValue, reading: Reading<Value>): Value | Promise<Value> => {
    if (reading.problems === undefined) return reading.value;
    // What fits is never touched, so it is looked at first.
    const meant = coercion(jsonSchema, input);
    if (meant === input) return accepted(owner, reading);
    const again = read(meant);
    return again instanceof Promise ? again.then((found) => accepted(owner, found)) : accepted(owner, again);
  };
  return {
    jsonSchema,
    parse: (input) => {
      const reading = read(input);
      return reading instanceof Promise
        ? reading.then((found) => parsed(input, found))
        : parsed(input, reading);
    },
  };
}

/** A value as its schema gives it, or what is wrong with it. */
type Reading<Value> =
  | { readonly value: Value; readonly problems?: undefined }
  | { readonly problems: readonly string[] };

interface ReadSchema<Value> {
  readonly jsonSchema: JsonSchema;
  readonly read: (input: JsonValue) => Reading<Value> | Promise<Reading<Value>>;
}

function accepted<Value>({ refuse }: SchemaOwner, reading: Reading<Value>): Value | Promise<Value> {
  return reading.problems === undefined ? reading.value : Promise.reject(refuse(reading.problems));
}

function unchanged(_schema: JsonSchema, input: JsonValue): JsonValue {
  return input;
}

export function toolSchema(toolName: string): SchemaOwner {
  return {
    schemaName: `the input schema of tool ${toolName}`,
    refuse: (problems) =>
      new Fault(
        "invalid_argument",
        `the arguments of ${toolName} do not fit its schema: ${problems.join("; ")}. Call it again with these mended`,
      ),
  };
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema;
}

function readStandard<Value>(owner: SchemaOwner, schema: StandardSchema): ReadSchema<Value> {
  const { jsonSchema, validate, vendor } = schema["~standard"];
  if (jsonSchema === undefined) {
    throw new Fault(
      "invalid_argument",
      `${owner.schemaName} (${vendor}) cannot describe itself as JSON Schema: use a newer ${vendor}, or a plain JSON Schema`,
    );
  }
  const reading = (result: Awaited<ReturnType<typeof validate>>): Reading<Value> =>
    result.issues === undefined
      ? { value: result.value as Value }
      : { problems: result.issues.map(formatIssue) };
  return {
    jsonSchema: jsonSchema.input({ target: "draft-2020-12" }) as JsonSchema,
    read: (input) => {
      const result = validate(input);
      return "then" in result ? Promise.resolve(result).then(reading) : reading(result);
    },
  };
}

function readJsonSchema<Value>(owner: SchemaOwner, schema: JsonSchema): ReadSchema<Value> {
  const check = jsonSchemaCheck(owner.schemaName, schema);
  const reading = (input: JsonValue, problems: readonly string[]): Reading<Value> =>
    // A copy: what is recorded of the call must not change when the body changes its input.
    problems.length === 0 ? { value: copyJson(input) as Value } : { problems };
  return {
    jsonSchema: schema,
    read: (input) => {
      const problems = check(input);
      return problems instanceof Promise
        ? problems.then((found) => reading(input, found))
        : reading(input, problems);
    },
  };
}

/** What is wrong with a value by a plain JSON Schema, which is compiled when it is first used; at once from then on. */
export function jsonSchemaCheck(
  what: string,
  schema: JsonSchema,
): (value: unknown) => readonly string[] | Promise<readonly string[]> {
  let problems: ((value: unknown) => readonly string[]) | undefined;
  return (value) => {
    if (problems !== undefined) return problems(value);
    return compile(what, schema).then((compiled) => {
      problems = compiled;
      return compiled(value);
    });
  };
}

const none: readonly string[] = [];
const options = { allErrors: true, strict: false, logger: false } as const;
const compilers = new Map<boolean, Promise<Ajv>>();

/** One for all, since the first schema of each takes tens of milliseconds; a schema with a name of its own is compiled where no other has it. */
function compiler(draft7: boolean, isNamed: boolean): Promise<Ajv> {
  const known = isNamed ? undefined : compilers.get(draft7);
  if (known !== undefined) return known;
  const made = newCompiler(draft7);
  if (!isNamed) compilers.set(draft7, made);
  return made;
}

async function newCompiler(draft7: boolean): Promise<Ajv> {
  return draft7
    ? new (await import("ajv")).Ajv(options)
    : new (await import("ajv/dist/2020.js")).Ajv2020(options);
}

/** Forgotten by the compiler, which would keep it for ever. */
function compileIn(ajv: Ajv, schema: JsonSchema): ValidateFunction {
  try {
    return ajv.compile(schema);
  } finally {
    ajv.removeSchema(schema);
  }
}

/** ajv is loaded with the first plain JSON Schema that is used, not with this package. */
async function compile(what: string, schema: JsonSchema): Promise<(value: unknown) => readonly string[]> {
  try {
    const draft7 = typeof schema["$schema"] === "string" && schema["$schema"].includes("draft-07");
    const validate = compileIn(await compiler(draft7, Object.hasOwn(schema, "$id")), schema);
    return (input) => {
      if (validate(input)) return none;
      return (validate.errors ?? []).map(({ instancePath, message = "is wrong" }) =>
        `${instancePath.slice(1).replaceAll("/", ".")} ${message}`.trim(),
      );
    };
  } catch (cause) {
    throw new Fault("invalid_argument", `${what} is not a JSON Schema`, { cause });
  }
}

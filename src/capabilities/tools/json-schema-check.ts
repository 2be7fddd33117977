import type { Ajv, ErrorObject, ValidateFunction } from "ajv";
import { Fault, type JsonSchema } from "../../kernel/index.ts";

/**
 * Validates values against a plain JSON Schema with ajv. The schema is compiled at its first use, and ajv is loaded with the first schema
 * that is compiled, so that neither costs time at import.
 */
export class JsonSchemaCheck {
  readonly #name: string;
  readonly #schema: JsonSchema;
  #validate: ValidateFunction | undefined;

  /** `name` describes the schema in faults, for example `the input schema of tool search`. */
  constructor(name: string, schema: JsonSchema) {
    this.#name = name;
    this.#schema = schema;
  }

  /**
   * Returns one text per problem of the value: its path, with dots, and what is wrong there. A valid value has none. The first call
   * returns a promise, because it compiles the schema; it rejects with `invalid_argument` if the schema is malformed. Later calls are
   * synchronous.
   */
  problems(value: unknown): readonly string[] | Promise<readonly string[]> {
    return this.#validate === undefined ? this.#firstProblems(value) : problemsOf(this.#validate, value);
  }

  async #firstProblems(value: unknown): Promise<readonly string[]> {
    this.#validate ??= await compile(this.#name, this.#schema);
    return problemsOf(this.#validate, value);
  }
}

const noProblems: readonly never[] = [];

function problemsOf(validate: ValidateFunction, value: unknown): readonly string[] {
  return validate(value) ? noProblems : (validate.errors ?? noProblems).map(formatProblem);
}

function formatProblem({ instancePath, message = "is invalid" }: ErrorObject): string {
  return `${instancePath.slice(1).replaceAll("/", ".")} ${message}`.trim();
}

async function compile(name: string, schema: JsonSchema): Promise<ValidateFunction> {
  try {
    const isDraft7 = typeof schema["$schema"] === "string" && schema["$schema"].includes("draft-07");
    const ajv = await compilerFor(isDraft7, Object.hasOwn(schema, "$id"));
    return compileWith(ajv, schema);
  } catch (cause) {
    const why = Fault.from(cause).message;
    throw new Fault("invalid_argument", `${name} is not a JSON Schema: ${why}`, { cause });
  }
}

const options = { allErrors: true, strict: false, logger: false } as const;
/** The shared compiler of each dialect; the key says whether it is draft 7. */
const compilers = new Map<boolean, Promise<Ajv>>();

/**
 * Returns the shared compiler of the dialect, because a new one takes tens of milliseconds to compile its meta-schema. A schema with an
 * `$id` gets a compiler of its own: ajv refuses two schemas with the same `$id`.
 */
function compilerFor(isDraft7: boolean, hasId: boolean): Promise<Ajv> {
  const shared = hasId ? undefined : compilers.get(isDraft7);
  if (shared !== undefined) return shared;
  const compiler = newCompiler(isDraft7);
  if (!hasId) compilers.set(isDraft7, compiler);
  return compiler;
}

async function newCompiler(isDraft7: boolean): Promise<Ajv> {
  return isDraft7
    ? new (await import("ajv")).Ajv(options)
    : new (await import("ajv/dist/2020.js")).Ajv2020(options);
}

/** Compiles a schema and removes it from the compiler, which would otherwise keep every schema in memory. */
function compileWith(ajv: Ajv, schema: JsonSchema): ValidateFunction {
  try {
    return ajv.compile(schema);
  } finally {
    ajv.removeSchema(schema);
  }
}

import { re2Pattern } from "./re2-pattern.ts";
import type { Ajv, ErrorObject, ValidateFunction } from "ajv";
import { Fault, type JsonSchema } from "../../kernel/index.ts";
import { checkWithin, countedReference, linearKeywords } from "./schema-effort.ts";

/** Tests texts against one `pattern` of a JSON Schema. */
interface SchemaPattern {
  test(text: string): boolean;
  /** Returns a text that identifies the pattern. ajv shares one object between equal patterns. */
  toString(): string;
}

let isEngineUsed = false;

/** Makes later patterns use the linear-time engine. Call it before a schema with patterns is compiled. */
function usePatternEngine(): void {
  isEngineUsed = true;
}

/**
 * Compiles a pattern so that a test takes time linear in the length of the text. The `RegExp` of JavaScript
 * backtracks, so that a pattern such as `^(a+)+$` from an untrusted server would block the process. A pattern that
 * the engine does not support (lookarounds, backreferences, repetitions above 1,000) is not checked here and
 * accepts every text. Throws `SyntaxError` if the pattern is malformed.
 */
function schemaPattern(source: string): SchemaPattern {
  const native = new RegExp(source, "u");
  // Without the engine, only the patterns of the meta-schemas of ajv are compiled, which do not backtrack.
  const { test } = isEngineUsed ? linear(source) : { test: (text: string) => native.test(text) };
  return { test, toString: () => `/${source}/u` };
}

/** Whether the engine can check this pattern. Throws `SyntaxError` if the pattern is malformed. */
function isSupported(source: string): boolean {
  void new RegExp(source, "u");
  return isEngineUsed && re2Pattern(source) !== undefined;
}

function linear(source: string): Pick<SchemaPattern, "test"> {
  const expression = re2Pattern(source);
  return { test: expression === undefined ? () => true : (text) => expression.test(text) };
}

/**
 * Validates values against a plain JSON Schema with ajv. The schema is compiled when it is first used, and ajv is
 * loaded when the first schema is compiled, so that neither costs time at import. Patterns run in a linear-time
 * engine, which is loaded with the first schema that has one; patterns that the engine does not support are not
 * checked.
 */
export class JsonSchemaCheck {
  readonly #name: string;
  readonly #schema: JsonSchema;
  #validate: ValidateFunction | undefined;
  /** The pending compilation. All calls that arrive before it ends share it. */
  #compiling: Promise<ValidateFunction> | undefined;

  /** `name` describes the schema in faults, for example `the input schema of tool search`. */
  constructor(name: string, schema: JsonSchema) {
    this.#name = name;
    this.#schema = schema;
  }

  /**
   * Returns one text per problem of the value: its path, with dots, and what is wrong there. The list is empty for
   * a valid value. The first call returns a promise, because it compiles the schema; it rejects with
   * `invalid_argument` if the schema is malformed. Later calls are synchronous. A check that would take too long,
   * because references multiply, fails with `invalid_argument`.
   */
  problems(value: unknown): readonly string[] | Promise<readonly string[]> {
    return this.#validate === undefined ? this.#firstProblems(value) : this.#problems(this.#validate, value);
  }

  async #firstProblems(value: unknown): Promise<readonly string[]> {
    this.#compiling ??= compile(this.#name, this.#schema);
    this.#validate = await this.#compiling;
    return this.#problems(this.#validate, value);
  }

  #problems(validate: ValidateFunction, value: unknown): readonly string[] {
    if (checkWithin(this.#name, value, validate)) return noProblems;
    return (validate.errors ?? noProblems).map(formatProblem);
  }
}

const noProblems: readonly never[] = [];

function formatProblem({ instancePath, message = "is invalid" }: ErrorObject): string {
  return `${instancePath.slice(1).replaceAll("/", ".")} ${message}`.trim();
}

async function compile(name: string, schema: JsonSchema): Promise<ValidateFunction> {
  try {
    const isDraft7 = typeof schema["$schema"] === "string" && schema["$schema"].includes("draft-07");
    const ajv = await compilerFor(isDraft7, Object.hasOwn(schema, "$id"));
    return compileWith(ajv, await checkableSchema(schema));
  } catch (cause) {
    const why = Fault.from(cause).message;
    throw new Fault("invalid_argument", `${name} is not a JSON Schema: ${why}`, { cause });
  }
}

/**
 * Matches the keys with a pattern in the JSON text of a schema. If it matches a property with such a name, the
 * engine is only loaded without need.
 */
const patternKey = /"pattern(?:Properties)?":/u;

/** Matches the keys with a reference in the JSON text of a schema. */
const referenceKey = /"\$(?:dynamic|recursive)?ref":/iu;

/**
 * Loads the pattern engine if the schema has a pattern. Returns the schema with every unsupported pattern of `patternProperties` replaced
 * by one that any property matches, with any value, and with every reference counted.
 */
async function checkableSchema(schema: JsonSchema): Promise<JsonSchema> {
  const text = JSON.stringify(schema);
  const hasPattern = patternKey.test(text);
  if (!hasPattern && !referenceKey.test(text)) return schema;
  if (hasPattern) usePatternEngine();
  return JSON.parse(text, (key, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    return key === "patternProperties" ? supported(value) : countedReference(value);
  }) as JsonSchema;
}

/** A pattern that every text matches. */
const anything = "(?:)";

function supported(properties: object): object {
  const entries = Object.entries(properties);
  return Object.fromEntries(
    entries.map(([source, value]) => (isSupported(source) ? [source, value] : [anything, true])),
  );
}

/** The function that ajv calls for each pattern. ajv writes `code` into the source of standalone validators, which are not used here. */
const regExp = Object.assign((source: string) => schemaPattern(source), { code: "schemaPattern" });
const options = { allErrors: true, strict: false, logger: false, code: { regExp } } as const;
/** The shared compiler of each dialect. The key says whether the dialect is draft 7. */
const compilers = new Map<boolean, Promise<Ajv>>();

/**
 * Returns the shared compiler of the dialect, because a new one takes tens of milliseconds to compile its
 * meta-schema. A schema with an `$id` gets its own compiler, because ajv refuses two schemas with the same `$id`.
 */
function compilerFor(isDraft7: boolean, hasId: boolean): Promise<Ajv> {
  const shared = hasId ? undefined : compilers.get(isDraft7);
  if (shared !== undefined) return shared;
  const compiler = newCompiler(isDraft7);
  if (!hasId) compilers.set(isDraft7, compiler);
  return compiler;
}

async function newCompiler(isDraft7: boolean): Promise<Ajv> {
  return linearKeywords(
    isDraft7
      ? new (await import("ajv")).Ajv(options)
      : new (await import("ajv/dist/2020.js")).Ajv2020(options),
  );
}

/** Compiles a schema and removes it from the compiler, which would otherwise keep every schema in memory. */
function compileWith(ajv: Ajv, schema: JsonSchema): ValidateFunction {
  try {
    return ajv.compile(schema);
  } finally {
    ajv.removeSchema(schema);
  }
}

import type { Ajv, ValidateFunction } from "ajv";
import { Fault, type JsonSchema } from "../../kernel/index.ts";
import { PlainSchema, type SchemaProblem } from "./plain-schema.ts";

/** What is wrong with a value by a plain JSON Schema; one that needs ajv is compiled when it is first used. `what` names it in faults. */
export class JsonSchemaCheck {
  readonly #what: string;
  readonly #schema: JsonSchema;
  #compiled: CompiledSchema | undefined;

  constructor(what: string, schema: JsonSchema) {
    this.#what = what;
    this.#schema = schema;
    this.#compiled = PlainSchema.of(schema);
  }

  /** At once, but for the first value of a schema that needs ajv. */
  problems(value: unknown): readonly string[] | Promise<readonly string[]> {
    if (this.#compiled === undefined) return this.#firstProblems(value);
    const found = this.#compiled.problems(value);
    return found.length === 0 ? none : told(found);
  }

  async #firstProblems(value: unknown): Promise<readonly string[]> {
    this.#compiled = await compile(this.#what, this.#schema);
    return told(this.#compiled.problems(value));
  }
}

interface CompiledSchema {
  problems(value: unknown): readonly SchemaProblem[];
}

const none: readonly never[] = [];

function told(problems: readonly SchemaProblem[]): readonly string[] {
  return problems.map(({ instancePath, message = "is wrong" }) =>
    `${instancePath.slice(1).replaceAll("/", ".")} ${message}`.trim(),
  );
}

async function compile(what: string, schema: JsonSchema): Promise<CompiledSchema> {
  try {
    return await compileByAjv(schema);
  } catch (cause) {
    const why = Fault.from(cause).message;
    throw new Fault("invalid_argument", `${what} is not a JSON Schema: ${why}`, { cause });
  }
}

/** It is loaded with the first schema that needs it, not with this package. */
async function compileByAjv(schema: JsonSchema): Promise<CompiledSchema> {
  const draft7 = typeof schema["$schema"] === "string" && schema["$schema"].includes("draft-07");
  const validate = compileIn(await compiler(draft7, Object.hasOwn(schema, "$id")), schema);
  return { problems: (value) => (validate(value) ? none : (validate.errors ?? none)) };
}

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

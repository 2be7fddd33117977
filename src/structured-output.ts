import type { Layer } from "./agents/middleware/layer.ts";
import { schemaValidator } from "./agents/middleware/schema-validator.ts";
import { SchemaReader } from "./capabilities/index.ts";
import { Fault, type Infer, type JsonValue, type Schema } from "./kernel/index.ts";
import { standardSchema } from "./standard-schema.ts";

export interface StructuredOutputOptions<Source extends Schema> {
  /** Any Standard Schema that can describe itself as JSON Schema (zod), or a plain JSON Schema written `as const`. */
  readonly schema: Source;
  /** Some providers show it to the model. */
  readonly name?: string;
  readonly description?: string;
  /** How often the model is asked again when its answer does not fit; each is a call that is paid. 2 unless told. */
  readonly maxRepairs?: number;
}

/** Middleware for an agent whose answer is a value. */
export interface StructuredOutput<Value> extends Layer {
  /** The value of an answer that went through it, such as a run's output. */
  parse(answer: JsonValue): Promise<Value>;
}

/**
 * Makes an agent's answer fit a schema: by the provider's own means where it has them, and by asking again, a bounded number of times,
 * with what was wrong. It stands around the model call, so each time it asks is a call of its own: reserved, retried, paid and told.
 * An answer that never fits fails the run.
 */
export function structuredOutput<const Source extends Schema>(
  options: StructuredOutputOptions<Source>,
): StructuredOutput<Infer<Source>> {
  const { schema, name = "answer", description, maxRepairs = 2 } = options;
  const schemaName = `the schema of the output ${name}`;
  const refuse = (problems: readonly string[]): Fault =>
    new Fault("invalid_argument", `this is not the output ${name}: ${problems.join("; ")}`);
  const reader = new SchemaReader<Infer<Source>>({ schemaName, refuse }, schema);
  const described = description === undefined ? {} : { description };
  const check = standardSchema(schemaName, schema);
  const validator = schemaValidator({
    schema: check,
    maxRepairs,
    onInvalid: "fail",
    format: { type: "json", schema: reader.jsonSchema, name, ...described },
  });
  return {
    ...validator,
    name: "structured-output",
    chat: async (context, next) => {
      // A plain schema that is none is found before anything is paid for it.
      if (check !== schema) await check["~standard"].validate(null);
      await validator.chat(context, next);
    },
    parse: async (answer) => reader.parse(typeof answer === "string" ? readJson(answer, refuse) : answer),
  };
}

function readJson(text: string, refuse: (problems: readonly string[]) => Fault): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw refuse(["it is not JSON"]);
  }
}

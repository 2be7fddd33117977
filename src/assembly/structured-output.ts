import { withCallerMethods, type Layer } from "../agents/interception/middleware/layer.ts";
import { schemaValidator } from "../agents/interception/middleware/schema-validator.ts";
import { SchemaReader } from "../capabilities/index.ts";
import {
  Fault,
  type Infer,
  type JsonValue,
  type Schema,
  is,
  optionTable,
  type OptionKinds,
} from "../kernel/index.ts";
import { standardSchema } from "./standard-schema.ts";

export interface StructuredOutputOptions<Source extends Schema> {
  /**
   * A Standard Schema that can convert itself to JSON Schema (such as a zod schema), or a JSON Schema written `as
   * const`.
   */
  readonly schema: Source;
  /** The name of the schema. Some providers show it to the model. */
  readonly name?: string;
  readonly description?: string;
  /**
   * Maximum number of times that the model is asked again if its answer does not match. Each attempt is a paid
   * call. Default: 2.
   */
  readonly maxRepairs?: number;
}

/** Middleware for an agent with structured output. */
export interface StructuredOutput<Value> extends Layer {
  /** Parses an answer that passed the middleware, such as a run's output. */
  parse(answer: JsonValue): Promise<Value>;
}

const knownOptions = optionTable({
  schema: is.any,
  name: is.text({ default: "answer" }),
  description: is.text(),
  maxRepairs: is.number({ from: 0, default: 2 }),
} satisfies OptionKinds<StructuredOutputOptions<Schema>>);

/**
 * Creates middleware that makes an agent's answer match a schema. It uses the provider's own support if there is
 * one, and asks the model again a limited number of times. Each attempt is a separate call: it is reserved,
 * retried, paid and emitted. If no answer matches, the run fails.
 */
export function structuredOutput<const Source extends Schema>(
  options: StructuredOutputOptions<Source>,
): StructuredOutput<Infer<Source>> {
  const { schema, name, description, maxRepairs } = knownOptions.read("structuredOutput()", options);
  const schemaName = `the schema of the output ${name}`;
  const refuse = (problems: readonly string[]): Fault =>
    new Fault(
      "invalid_argument",
      `the answer does not match the output schema ${name}: ${problems.join("; ")}`,
    );
  const reader = new SchemaReader<Infer<Source>>({ schemaName, refuse }, schema);
  const described = description === undefined ? {} : { description };
  const check = standardSchema(schemaName, schema);
  const validator = schemaValidator({
    schema: check,
    maxRepairs,
    onInvalid: "fail",
    format: { type: "json", schema: reader.jsonSchema, name, ...described },
  });
  const layer: Layer = {
    ...validator,
    name: "structured-output",
    chat: async (context, next) => {
      // An invalid JSON Schema is detected before any call is paid.
      if (check !== schema) await check["~standard"].validate(null);
      await validator.chat(context, next);
    },
  };
  const parse = async (answer: JsonValue): Promise<Infer<Source>> =>
    reader.parse(typeof answer === "string" ? readJson(answer, refuse) : answer);
  return withCallerMethods(layer, { parse });
}

function readJson(text: string, refuse: (problems: readonly string[]) => Fault): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw refuse(["it is not JSON"]);
  }
}

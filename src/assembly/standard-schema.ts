import { JsonSchemaCheck } from "../capabilities/index.ts";
import type { Schema, StandardSchema } from "../kernel/index.ts";

/**
 * Converts a schema to a Standard Schema. A JSON Schema is compiled on first use. `what` is the name of the schema
 * in faults.
 */
export function standardSchema(what: string, schema: Schema): StandardSchema {
  if (isStandard(schema)) return schema;
  const check = new JsonSchemaCheck(what, schema);
  return {
    "~standard": {
      version: 1,
      vendor: "json-schema",
      validate: async (value) => {
        const problems = await check.problems(value);
        return problems.length === 0 ? { value } : { issues: problems.map((message) => ({ message })) };
      },
    },
  };
}

function isStandard(schema: Schema): schema is StandardSchema {
  return "~standard" in schema;
}

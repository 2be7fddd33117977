import type { JsonObject } from "../../../kernel/index.ts";
import type { Field, Fields } from "./fields.ts";
import { settingsFields } from "./settings-fields.ts";

/** Returns the JSON Schema of `settings.json`, which the package publishes as `settings.schema.json`. */
export function settingsSchema(): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Settings of Reeve",
    ...objectSchema(settingsFields),
  };
}

function objectSchema(fields: Fields): JsonObject {
  const properties = Object.entries(fields).map(([name, field]) => [name, fieldSchema(field)]);
  return {
    type: "object",
    properties: Object.fromEntries(properties) as JsonObject,
    additionalProperties: false,
  };
}

function fieldSchema(field: Field): JsonObject {
  const { description } = field;
  switch (field.type) {
    case "text":
      return { type: "string", description };
    case "boolean":
      return { type: "boolean", description };
    case "texts":
      return { type: "array", items: { type: "string" }, description };
    case "integer":
      return { type: "integer", minimum: 1, description };
    case "number":
      return { type: "number", minimum: 0, description };
    case "choice":
      return { enum: [...field.choices], description };
    case "group":
      return field.canBeOff === true
        ? { anyOf: [{ const: false }, objectSchema(field.fields)], description }
        : { ...objectSchema(field.fields), description };
    case "map":
      return { type: "object", additionalProperties: objectSchema(field.fields), description };
  }
}

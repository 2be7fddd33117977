import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { Fault, nearestName } from "../../../kernel/index.ts";
import type { Schema } from "./schema.ts";

const options = {
  strict: true,
  allErrors: false,
  strictTypes: false,
  strictRequired: false,
  validateFormats: false,
  verbose: true,
} as const;
/** Options for values of paths and queries. These values are texts; numbers and booleans are converted. */
const coercing = { ...options, coerceTypes: "array" } as const;

/** The part of a request that contains a value. */
export type Place = "path" | "query" | "body";

/** Checks values of requests with the schemas of a route. A schema is compiled when it is first used. */
export class Validator {
  readonly #exact = prepared(new Ajv2020(options));
  readonly #coercing = prepared(new Ajv2020(coercing));
  readonly #compiled = new Map<Schema, ValidateFunction>();

  /** Throws `invalid_argument`, with the place and the expected value, if the value does not match the schema. */
  check(schema: Schema, value: unknown, place: Place): void {
    const validate = this.#compile(schema, place);
    if (validate(value)) return;
    throw invalidValue(validate.errors?.[0], value, place);
  }

  #compile(schema: Schema, place: Place): ValidateFunction {
    const known = this.#compiled.get(schema);
    if (known !== undefined) return known;
    const ajv = place === "body" ? this.#exact : this.#coercing;
    const validate = ajv.compile({ ...schema.json, components: { schemas: schema.definitions } });
    this.#compiled.set(schema, validate);
    return validate;
  }
}

function prepared(ajv: Ajv2020): Ajv2020 {
  return ajv.addVocabulary(["components", "example"]);
}

function invalidValue(error: ErrorObject | undefined, value: unknown, place: Place): Fault {
  const where = error === undefined || error.instancePath === "" ? place : `${place}${error.instancePath}`;
  const details = { place, path: error?.instancePath ?? "" };
  if (error?.keyword === "additionalProperties") {
    const { additionalProperty: name } = error.params as { readonly additionalProperty: string };
    const known = Object.keys((error.parentSchema?.["properties"] as object | undefined) ?? {});
    const nearest = nearestName(name, known);
    const advice =
      nearest !== undefined
        ? `use ${nearest}`
        : known.length > 0
          ? `expected one of ${known.join(", ")}`
          : "expected none";
    return new Fault("invalid_argument", `unknown field ${JSON.stringify(name)} of the ${where}: ${advice}`, {
      details,
    });
  }
  if (error?.keyword === "enum") {
    const { allowedValues } = error.params as { readonly allowedValues: readonly unknown[] };
    return new Fault("invalid_argument", `invalid ${where}: expected one of ${allowedValues.join(", ")}`, {
      details,
    });
  }
  const expected = error?.message ?? "another value";
  const found = value === undefined ? "; the value is missing" : "";
  return new Fault("invalid_argument", `invalid ${where}: it ${expected}${found}`, { details });
}

import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import { PlainSchema, type SchemaProblem } from "../../src/capabilities/tools/plain-schema.ts";
import type { JsonObject, JsonSchema, JsonValue } from "../../src/kernel/index.ts";
import { propertyRuns } from "../property-runs.ts";

const options = { allErrors: true, strict: false, logger: false } as const;
const draft7 = "http://json-schema.org/draft-07/schema#";
const draft2020 = "https://json-schema.org/draft/2020-12/schema";

const names = fc.constantFrom("a", "b", "c", "", "x/y", "x~y", "a.b", "constructor", "0");
const scalars = fc.oneof(
  fc.constantFrom<JsonValue[]>(
    null,
    true,
    false,
    0,
    1,
    2,
    2.5,
    -1,
    -0,
    1e21,
    "",
    "a",
    "ab",
    "abc",
    "😀",
    "\ud83d",
  ),
  fc.integer({ min: -5, max: 5 }),
  fc.string({ unit: "binary", maxLength: 4 }),
);
const types = fc.constantFrom("string", "number", "integer", "boolean", "null", "object", "array");
const counts = fc.nat({ max: 3 });
const limits = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(0.5, -0, 1e21));
const patterns = fc.constantFrom("", "a", "^a+$", '[/"\\\\]', "^.$", "\\d", "\u2028");

/** What tools say, and stranger things: any keyword beside any other. */
const { schema: plain } = fc.letrec<{ schema: JsonObject; alone: Said; nested: Said }>((tie) => ({
  schema: fc
    .array(fc.oneof({ maxDepth: 3, depthIdentifier: "schema" }, tie("alone"), tie("nested")), {
      maxLength: 6,
    })
    .map((all) => Object.fromEntries(all)),
  alone: fc.oneof(
    said("type", types),
    said("type", fc.uniqueArray(types, { minLength: 1, maxLength: 3 })),
    said("const", scalars),
    said("enum", fc.uniqueArray(scalars, { minLength: 1, maxLength: 4, comparator: "SameValueZero" })),
    said("maximum", limits),
    said("minimum", limits),
    said("exclusiveMaximum", limits),
    said("exclusiveMinimum", limits),
    said("maxLength", counts),
    said("minLength", counts),
    said("pattern", patterns),
    said("format", fc.constantFrom("uri", "date-time", "int32")),
    said("maxItems", counts),
    said("minItems", counts),
    said("maxProperties", counts),
    said("minProperties", counts),
    said("required", fc.uniqueArray(names, { maxLength: 3 })),
    said("description", fc.string()),
    said("title", fc.string()),
    said("default", scalars),
    said("deprecated", fc.boolean()),
    said("examples", fc.array(scalars, { maxLength: 2 })),
  ),
  nested: fc.oneof(
    said("anyOf", fc.array(tie("schema"), { minLength: 1, maxLength: 3 })),
    said("oneOf", fc.array(tie("schema"), { minLength: 1, maxLength: 3 })),
    said("allOf", fc.array(tie("schema"), { minLength: 1, maxLength: 2 })),
    said("items", tie("schema")),
    said("propertyNames", tie("schema")),
    said("properties", fc.dictionary(names, tie("schema"), { maxKeys: 10 })),
    said("additionalProperties", fc.oneof(fc.boolean(), tie("schema"))),
  ),
}));

type Said = readonly [string, JsonValue];

function said(keyword: string, value: fc.Arbitrary<JsonValue>): fc.Arbitrary<Said> {
  return fc.tuple(fc.constant(keyword), value);
}

const values = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalars,
    fc.dictionary(names, tie("value"), { maxKeys: 4 }),
    fc.array(tie("value"), { maxLength: 4 }),
  ),
})).value;
const several = fc.array(values, { minLength: 1, maxLength: 8 });

const compilers = { [draft7]: new Ajv(options), [draft2020]: new Ajv2020(options) };
const dialects = fc.constantFrom(draft7, draft2020);

/** In each value. */
type Found = readonly (readonly SchemaProblem[])[];

/** What ajv finds; `undefined` where it refuses the schema. */
function byAjv(schema: JsonSchema, some: readonly JsonValue[]): Found | undefined {
  const ajv = compilers[schema["$schema"] as keyof typeof compilers];
  try {
    const validate = ajv.compile(schema);
    return some.map((value) => (validate(value) ? [] : (validate.errors ?? []).map(placed)));
  } catch {
    return undefined;
  } finally {
    ajv.removeSchema(schema);
  }
}

function byUs(schema: JsonSchema, some: readonly JsonValue[]): Found | undefined {
  const read = PlainSchema.of(schema);
  return read && some.map((value) => read.problems(value));
}

function placed({ instancePath, message = "" }: SchemaProblem): SchemaProblem {
  return { instancePath, message };
}

test("what is plain is read without ajv, with the same problems in the same words and order", () => {
  fc.assert(
    fc.property(plain, several, dialects, (says, some, $schema) => {
      const schema = { $schema, ...says };
      expect(byUs(schema, some)).toEqual(byAjv(schema, some));
    }),
    { numRuns: propertyRuns(2_000) },
  );
});

const words =
  "type const enum anyOf maximum minLength pattern maxItems items required properties additionalProperties format title examples " +
  "deprecated $id $ref $defs oneOf allOf not if dependentRequired nullable uniqueItems prefixItems multipleOf definitions x-own";
const keywords = fc.constantFrom(...words.split(" "));
const oddities = fc.oneof(
  values,
  plain,
  fc.array(plain, { maxLength: 2 }),
  fc.constantFrom("(", "string", "#"),
);

test("what is malformed is left to ajv, and so is what says more", () => {
  fc.assert(
    fc.property(plain, keywords, oddities, several, dialects, (says, keyword, odd, some, $schema) => {
      for (const schema of [
        { $schema, ...says, [keyword]: odd },
        { $schema, properties: { a: { ...says, [keyword]: odd } } },
      ]) {
        const found = byUs(schema, some);
        expect(found).toEqual(found && byAjv(schema, some));
      }
    }),
    { numRuns: propertyRuns(4_000) },
  );
});

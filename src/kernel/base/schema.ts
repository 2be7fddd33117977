import type { JsonObject, JsonValue } from "./json-value.ts";

/** A JSON Schema as a plain object. */
export type JsonSchema = JsonObject;

/**
 * The parts of the Standard Schema interface that Reeve uses. Libraries such as zod, valibot and arktype implement
 * this interface.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | PromiseLike<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    /** Converts the schema to JSON Schema. Present on schemas that support it. */
    readonly jsonSchema?: {
      readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
    };
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Formats a validation issue with its path, such as `degrees expected number`. */
export function formatIssue({ message, path = [] }: SchemaIssue): string {
  const keys = path.map((key) => String(typeof key === "object" ? key.key : key));
  return `${keys.join(".")} ${message}`.trim();
}

/** A schema with which a tool declares its input. */
export type Schema = StandardSchema | JsonSchema;

/** The type of the values that pass a schema. A part whose type cannot be inferred has the type of a JSON value. */
export type Infer<Source> = Source extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly output: infer Output }
    ? Output
    : unknown
  : Source extends JsonSchema
    ? InferJson<Source>
    : unknown;

/** The type of the values that a schema accepts, before it applies defaults and transforms. */
export type InferInput<Source> = Source extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Input }
    ? Input
    : unknown
  : Infer<Source>;

type InferJson<Source> = Source extends { readonly const: infer Value }
  ? Value
  : Source extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Source extends { readonly type: "string" }
      ? string
      : Source extends { readonly type: "number" | "integer" }
        ? number
        : Source extends { readonly type: "boolean" }
          ? boolean
          : Source extends { readonly type: "null" }
            ? null
            : Source extends { readonly type: "array" }
              ? Source extends { readonly items: infer Items }
                ? InferJson<Items>[]
                : JsonValue[]
              : Source extends { readonly type: "object"; readonly properties: infer Properties }
                ? InferObject<
                    Properties,
                    Source extends { readonly required: readonly (infer Key)[] } ? Key : never
                  >
                : Source extends { readonly type: "object" }
                  ? JsonObject
                  : JsonValue;

type InferObject<Properties, Required> = Flat<
  { [Key in keyof Properties as Key extends Required ? Key : never]: InferJson<Properties[Key]> } & {
    [Key in keyof Properties as Key extends Required ? never : Key]?: InferJson<Properties[Key]>;
  }
>;

type Flat<Shape> = { [Key in keyof Shape]: Shape[Key] };

/** Returns what is wrong with a value according to a schema; an empty list if the value is valid. */
export type SchemaCheck = (
  schema: JsonSchema,
  value: JsonValue,
) => readonly string[] | Promise<readonly string[]>;

/** A value that JSON can hold. Everything that is stored is one. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** Type of a part that JSON cannot hold. Its name appears in the error of the compiler. */
interface NotJson {
  readonly "this value is not JSON": never;
}

/**
 * The type `Value` itself if JSON can hold its values. Otherwise each part that JSON cannot hold, such as a `Date`
 * or a function, has a type to which no value can be assigned, so that the error of the compiler names the part.
 * Unlike `JsonValue`, it accepts interfaces. A part of type `unknown` has the type `Unknown`.
 */
export type Serializable<Value, Unknown = NotJson> = Value extends JsonValue
  ? Value
  : Value extends undefined | void
    ? Value
    : Value extends
          | ((...args: never) => unknown)
          | symbol
          | bigint
          | Date
          | RegExp
          | Error
          | ReadonlyMap<unknown, unknown>
          | ReadonlySet<unknown>
          | PromiseLike<unknown>
      ? NotJson
      : Value extends object
        ? { readonly [Key in keyof Value]: Serializable<Value[Key], Unknown> }
        : Unknown;

/**
 * Type of the values that code may return if a schema converts them from `Given` to `Stored`. Parts of `Stored`
 * that JSON cannot hold are compile errors of the code. A part of type `unknown` accepts any JSON.
 */
export type GivenAsJson<Given, Stored> =
  Stored extends Serializable<Stored, unknown> ? Given : Given & Serializable<Stored, unknown>;

/** Type of the recorded form of a value: `null` replaces `undefined` and `void`. */
export type RecordedValue<Value> = Value extends undefined | void ? null : Value;

/** An object that JSON can hold. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** A value that JSON can hold. Everything that is stored is one. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

/** An object that JSON can hold. */
export type JsonObject = { readonly [key: string]: JsonValue };

import { describeValue, Fault } from "../../../../kernel/index.ts";

/** A schema of a database. */
export interface SchemaPlace {
  /** URL of the database, without the parameter `schema`, because the server would refuse it. */
  readonly url: string;
  readonly schema: string;
}

export interface SchemaOptions {
  /** URL of the database. Its parameter `schema` is an alternative to `schema`. */
  readonly url: string;
  readonly schema?: string | undefined;
  /** The schema if neither the options nor the URL name one. */
  readonly otherwise: string;
}

/** Returns the schema that the options or the URL name. `caller` is the function whose options these are. */
export function schemaOf({ url, schema, otherwise }: SchemaOptions, caller: string): SchemaPlace {
  const [, before = url, query = ""] = /^([^?]*)\?(.*)$/su.exec(url) ?? [];
  const parameters = new URLSearchParams(query);
  const name = schema ?? parameters.get("schema") ?? otherwise;
  parameters.delete("schema");
  if (!/^[a-z_][a-z0-9_]{0,62}$/u.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid schema ${describeValue(name)} of ${caller}: expected 1 to 63 lower-case letters, digits and "_", not starting with a digit`,
    );
  return { url: parameters.size === 0 ? before : `${before}?${parameters.toString()}`, schema: name };
}

import { describeValue, Fault, is, optionTable } from "../../../../kernel/index.ts";

/**
 * The options of a URL: `schema`, and those that the driver knows. All other options are refused, because the
 * driver ignores them, even some that protect the connection in other programs, such as `channel_binding`.
 */
const urlOptions = optionTable(
  {
    schema: is.text(),
    host: is.text(),
    port: is.text(),
    user: is.text(),
    password: is.text(),
    ssl: is.text(),
    sslmode: is.text(),
    sslcert: is.text(),
    sslkey: is.text(),
    sslrootcert: is.text(),
    sslnegotiation: is.text(),
    uselibpqcompat: is.text(),
    application_name: is.text(),
    fallback_application_name: is.text(),
    statement_timeout: is.text(),
    lock_timeout: is.text(),
    idle_in_transaction_session_timeout: is.text(),
    query_timeout: is.text(),
    options: is.text(),
  },
  besideUrl,
);

/** Options of the function that takes the URL, and options of libpq with the same meaning. */
const optionsBesideUrl = new Map(
  ["connections", "timeoutMs", "retryForMs", "leaseMs", "watchEveryMs", "pollMs"].map((name) => [name, name]),
).set("connect_timeout", "timeoutMs");

/** Returns where an option belongs that is not part of the URL. `undefined` for an unknown option. */
function besideUrl(name: string): string | undefined {
  const option = optionsBesideUrl.get(name);
  return option && `give it beside the URL; use { url, ${option}: ... }`;
}

/** A schema of a database. */
export interface SchemaPlace {
  /** URL of the database. The parameter `schema` is removed, because the server would refuse it. */
  readonly url: string;
  readonly schema: string;
}

export interface SchemaOptions {
  /** URL of the database. Its parameter `schema` can be used instead of the option `schema`. */
  readonly url: string;
  readonly schema?: string | undefined;
  /** The schema if neither the options nor the URL name one. */
  readonly otherwise: string;
}

/** Returns the schema that the options or the URL name. Throws `invalid_argument` for an option that has no meaning. `caller` is the function whose options these are. */
export function schemaOf({ url, schema, otherwise }: SchemaOptions, caller: string): SchemaPlace {
  const [, before = url, query = ""] = /^([^?]*)\?(.*)$/su.exec(url) ?? [];
  const parameters = new URLSearchParams(query);
  urlOptions.read(`the URL of ${caller}`, Object.fromEntries(parameters));
  for (const option of parameters.keys())
    if (parameters.getAll(option).length > 1)
      throw new Fault(
        "invalid_argument",
        `invalid ${option} of the URL of ${caller}: it is given twice; give it once`,
      );
  const name = schema ?? parameters.get("schema") ?? otherwise;
  parameters.delete("schema");
  if (!/^[a-z_][a-z0-9_]{0,62}$/u.test(name))
    throw new Fault(
      "invalid_argument",
      `invalid schema ${describeValue(name)} of ${caller}: expected 1 to 63 lower-case letters, digits and "_", not starting with a digit`,
    );
  return { url: parameters.size === 0 ? before : `${before}?${parameters.toString()}`, schema: name };
}

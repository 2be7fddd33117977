import { knownFormats } from "../codec/stored-format.ts";
import { Database } from "./db/database.ts";
import { formatOf, storeTableSet } from "./db/migrate.ts";
import { schemaOf } from "./db/schema-name.ts";

/** Facts about a store that a PostgreSQL server returns without a change to the store. */
export interface InspectedServer {
  /** Host, port and database, without the password. */
  readonly address: string;
  readonly schema: string;
  /** Version of the server, such as `16.4`. */
  readonly server: string;
  readonly encoding: string;
  /** The stored format, and the one that this version of Reeve writes. 0 if the schema has no tables. */
  readonly format: number;
  readonly newest: number;
  /** Size of the database. */
  readonly bytes: number;
  /** By how much the clock of the server is ahead of this machine, in milliseconds. */
  readonly clockAheadMs: number;
}

interface Facts {
  readonly server: string;
  readonly encoding: string;
  readonly bytes: number;
  readonly now: number;
}

/** Reads facts about the store at an address. If the server refuses it, throws the same fault as opening the store. */
export async function inspectServer(address: string, timeoutMs: number): Promise<InspectedServer> {
  const { url, schema } = schemaOf({ url: address, otherwise: "reeve" }, "the store");
  const database = new Database({ url, schema, connections: 1, timeoutMs, retryForMs: 0 });
  try {
    await database.reach();
    return await database.read(async (queries) => {
      const asked = Date.now();
      const facts = await queries.get<Facts>(
        `SELECT current_setting('server_version') AS server, current_setting('server_encoding') AS encoding,
          pg_database_size(current_database())::float8 AS bytes, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`,
      );
      const answered = Date.now();
      return {
        address: database.address,
        schema,
        server: facts?.server ?? "unknown",
        encoding: facts?.encoding ?? "unknown",
        format: await formatOf(queries, database, storeTableSet),
        newest: knownFormats(storeTableSet).newest,
        bytes: facts?.bytes ?? 0,
        // The server has read its clock between the question and the answer.
        clockAheadMs: Math.round((facts?.now ?? asked) - (asked + answered) / 2),
      };
    });
  } finally {
    await database.close();
  }
}

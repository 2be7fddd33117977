import { Fault } from "../kernel/index.ts";
import { sqlitePath } from "./open-store.ts";
import { explainMissingDriver } from "./stores/postgres/missing-driver.ts";
import type { InspectedServer } from "./stores/postgres/inspect-server.ts";
import type { InspectedFile, InspectFileOptions } from "./stores/sqlite/inspect-file.ts";

/** What is known about a store without opening it for writing. */
export type InspectedStore =
  | ({ readonly kind: "sqlite"; readonly path: string } & InspectedFile)
  | ({ readonly kind: "postgres" } & InspectedServer);

export interface InspectStoreOptions extends InspectFileOptions {
  /** Maximum time that a server may take to answer. */
  readonly timeoutMs: number;
}

/**
 * Reads what can be said about a store without changing it: version, damage, size, locks and clock. Throws the fault of an
 * opening if the store cannot be read.
 */
export async function inspectStore(address: string, options: InspectStoreOptions): Promise<InspectedStore> {
  const path = sqlitePath(address);
  if (path !== undefined) {
    const { inspectFile } = await import("./stores/sqlite/inspect-file.ts");
    return { kind: "sqlite", path, ...(await inspectFile(path, options)) };
  }
  if (/^postgres(?:ql)?:/u.test(address)) {
    const { inspectServer } = await import("./stores/postgres/inspect-server.ts").catch(explainMissingDriver);
    return { kind: "postgres", ...(await inspectServer(address, options.timeoutMs)) };
  }
  throw new Fault(
    "invalid_argument",
    `invalid store ${JSON.stringify(address)}: expected "sqlite:PATH" or "postgres://HOST/DATABASE"`,
  );
}

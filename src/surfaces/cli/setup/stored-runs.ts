import { Fault, type RunId, type Store } from "../../../kernel/index.ts";
import { openStore, refuseAbsentFile } from "../../../runtime/index.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface StoreOptions {
  readonly store: string;
  /** Name of the environment variable that contains the audit key. */
  readonly keyEnv?: string;
}

/** Opens an existing store, calls `use` with it, and closes it. */
export async function withStore<Result>(
  options: StoreOptions,
  terminal: Terminal,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  const { store: address, keyEnv } = options;
  const auditKey = keyEnv === undefined ? undefined : keyIn(keyEnv, terminal);
  refuseAbsent(address);
  const store = await openStore(address, { create: false, ...(auditKey !== undefined && { auditKey }) });
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Returns the ids of all runs of the store, oldest first. */
export async function allRuns({ journal }: Store): Promise<readonly RunId[]> {
  const found: RunId[] = [];
  let after: string | null = null;
  do {
    const { runs, next } = await journal.list({ limit: 500, ...(after === null ? {} : { after }) });
    found.push(...runs.map(({ runId }) => runId));
    after = next;
  } while (after !== null);
  return found.toReversed();
}

/** Throws if a store does not exist, because to open it would create the file. */
export function refuseAbsent(address: string): void {
  if (address === "memory:") {
    throw new Fault(
      "invalid_argument",
      "a store in memory is visible only to its own process; use a file: --store sqlite:PATH",
    );
  }
  const path = address.startsWith("sqlite:") ? address.slice("sqlite:".length) : "";
  if (path !== "") refuseAbsentFile(path);
}

/**
 * Reads the audit key from an environment variable. The key is not an argument, because every user of the machine
 * can see the arguments of a process.
 */
function keyIn(name: string, { env }: Terminal): string {
  const key = env[name];
  if (key !== undefined && key !== "") return key;
  throw new Fault("invalid_argument", `invalid --key-env ${name}: the variable ${name} is empty or not set`);
}

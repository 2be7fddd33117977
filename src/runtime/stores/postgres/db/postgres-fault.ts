import { Fault, type FaultCode, type SubclassCode } from "../../../../kernel/index.ts";

interface Meaning {
  readonly code: Exclude<FaultCode, SubclassCode>;
  readonly says: string;
}

const unreachable: Meaning = { code: "store_unavailable", says: "cannot be reached" };
const refused: Meaning = {
  code: "permission_denied",
  says: "refuses this user or its password; check the URL and pg_hba.conf",
};
const unavailable = (says: string): Meaning => ({ code: "store_unavailable", says });

/** Faults by SQLSTATE, or by the class of a SQLSTATE, which is its first two characters. */
const meanings = new Map<string, Meaning>([
  ["08", unreachable],
  ["25006", { code: "store_read_only", says: "is read-only; connect to the primary server" }],
  ["28", refused],
  [
    "3D000",
    { code: "not_found", says: "does not exist; create the database, or correct its name in the URL" },
  ],
  [
    "3F000",
    { code: "not_found", says: "has no such schema; grant CREATE on the database, or create the schema" },
  ],
  ["40", unavailable("gave up a transaction that conflicts with others; try again")],
  [
    "42501",
    {
      code: "permission_denied",
      says: "grants this user too few rights; grant CREATE on the database for the first start, and USAGE on the schema and all rights on its tables",
    },
  ],
  ["53100", { code: "store_full", says: "cannot grow because its disk is full; free some space" }],
  ["53200", unavailable("is out of memory")],
  [
    "53300",
    unavailable(
      "accepts no more connections; raise max_connections, lower `connections` of each store, or use a pooler",
    ),
  ],
  ["53", unavailable("is out of resources")],
  [
    "54000",
    { code: "too_large", says: "refuses a name or an id of more than 2,000 bytes; use a shorter one" },
  ],
  ["55P03", unavailable("kept a row locked for too long")],
  ["57", unavailable("ended the statement because it shuts down, starts or cancelled it")],
  ["58", unavailable("could not read or write its files")],
  ["XX001", { code: "store_corrupt", says: "found a damaged page; restore a backup" }],
  ["XX002", { code: "store_corrupt", says: "found a damaged index; run REINDEX" }],
]);

/**
 * Matches messages of a driver about a lost connection that have neither an SQLSTATE nor a code of the operating
 * system.
 */
const lostConnection =
  /terminated|connection error|timeout exceeded when trying to connect|Query read timeout|was closed|Connection ended/iu;

/** Codes of the operating system that say that the address is wrong, or that no server listens there. */
const wrongAddress = new Set(["ENOTFOUND", "EAI_FAIL", "EINVAL", "ECONNREFUSED"]);

/**
 * Converts an error of the driver into a fault that says what to do. Any other error is converted with
 * `Fault.from`.
 */
export function postgresFault(error: unknown, address: string): Fault {
  if (Fault.is(error)) return error;
  const state = stateOf(error);
  const meaning = meaningOf(error, state);
  if (meaning === undefined) return Fault.from(error);
  const reason = meaning === unreachable ? `: ${reasonOf(error)}` : "";
  return new Fault(meaning.code, `the store at ${address} ${meaning.says}${reason}`, {
    cause: error,
    details: { address, ...(state !== undefined && { postgres: state }) },
  });
}

function meaningOf(error: unknown, state: string | undefined): Meaning | undefined {
  if (state !== undefined) return meanings.get(state) ?? meanings.get(state.slice(0, 2));
  return isLostConnection(error) ? unreachable : undefined;
}

/** Whether the same work may succeed if it is tried again. Nothing was written in this case. */
export function isTransient(error: unknown): boolean {
  const state = stateOf(error);
  if (state === undefined) return isLostConnection(error);
  return /^(?:08|40|57|53300|55P03|25P03)/u.test(state) && state !== "57014";
}

/** Whether the connection was lost, so that the outcome of a statement in progress is unknown. */
export function isLostConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = stateOf(error);
  if (state !== undefined) return /^(?:08|57P0[1-3]|25P03)/u.test(state);
  const code = systemCode(error);
  return code === undefined ? lostConnection.test(error.message) : true;
}

/** Whether the address is wrong, or no server listens there. A server that restarts gives the same error. */
export function isWrongAddress(error: unknown): boolean {
  const code = error instanceof Error ? systemCode(error) : undefined;
  return code !== undefined && wrongAddress.has(code);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || (systemCode(error) ?? error.name) : String(error);
}

/** The SQLSTATE of an error that the server sent. */
export function stateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  return /^[0-9A-Z]{5}$/u.test(error.code) && "severity" in error ? error.code : undefined;
}

/** The code of an error of the operating system, such as ECONNRESET. */
function systemCode(error: Error): string | undefined {
  if (error instanceof AggregateError) {
    const [first] = error.errors as readonly unknown[];
    return first instanceof Error ? systemCode(first) : undefined;
  }
  if (!("code" in error) || typeof error.code !== "string" || "severity" in error) return undefined;
  return /^E[A-Z_]+$/u.test(error.code) ? error.code : undefined;
}

import {
  Fault,
  parseRunId,
  type JsonValue,
  type Records,
  type RunId,
  type StoredRecord,
} from "../../kernel/index.ts";
import { hashOf, newToken } from "./access.ts";

/** A token of a gateway run, without its text. */
export interface GatewayToken {
  readonly hash: string;
  readonly runId: RunId;
  /** The last characters of the text, for people who compare. */
  readonly ending: string;
  readonly createdAt: number;
  /** Time from which the token is refused, in epoch milliseconds. `null`: with the end of its run. */
  readonly expiresAt: number | null;
}

/** A process that serves gateway runs of the store. */
interface GatewayServer {
  readonly url: string;
  readonly startedAt: number;
}

const tokenSpace = "gateway-tokens";
const nameSpace = "gateway-names";
const serverSpace = "gateway-servers";

/** The tokens of gateway runs, in the records of a store. A token is stored as a hash. */
export class GatewayTokens {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  /** Creates a token of a run and returns its text, which cannot be read again. */
  async create(
    runId: RunId,
    { expiresAt = null }: { readonly expiresAt?: number | null } = {},
  ): Promise<string> {
    const token = newToken();
    const value = { runId, ending: token.slice(-3), createdAt: Date.now(), expiresAt };
    await this.#records.put({ namespace: tokenSpace, key: hashOf(token), value }, "absent");
    return token;
  }

  /** Returns the token with this hash, or `undefined` if there is none or it has expired. */
  async find(hash: string): Promise<GatewayToken | undefined> {
    const stored = await this.#records.get({ namespace: tokenSpace, key: hash });
    const token = stored && tokenOf(stored);
    return token === undefined || (token.expiresAt ?? Infinity) <= Date.now() ? undefined : token;
  }

  /** Returns the tokens of a run. Reads the tokens of all runs. */
  async ofRun(runId: RunId): Promise<readonly GatewayToken[]> {
    const found: GatewayToken[] = [];
    for await (const record of this.#all(tokenSpace)) {
      const token = tokenOf(record);
      if (token.runId === runId) found.push(token);
    }
    return found;
  }

  /** Deletes tokens of a run: the one with this text, or all. Every server refuses them from now on. */
  async revoke(runId: RunId, token?: string): Promise<void> {
    const hashes = token === undefined ? (await this.ofRun(runId)).map(({ hash }) => hash) : [hashOf(token)];
    for (const key of hashes) await this.#delete(tokenSpace, key);
  }

  /** Gives a name to a run that will be created. `isFree` tells whether the run that has the name now has ended. */
  async claim(name: string, runId: RunId, isFree: (runId: RunId) => Promise<boolean>): Promise<void> {
    const place = { namespace: nameSpace, key: name };
    const before = await this.#records.get(place);
    if (before !== undefined && !(await isFree(runIn(before)))) throw taken(name);
    const write = await this.#records.put({ ...place, value: { runId } }, before?.version ?? "absent");
    if (write.kind === "conflict") throw taken(name);
  }

  /** Returns the run that has a name, or `undefined` if there is none. */
  async runNamed(name: string): Promise<RunId | undefined> {
    const stored = await this.#records.get({ namespace: nameSpace, key: name });
    return stored && runIn(stored);
  }

  /** Lets commands of other processes find the gateway at `url`. Returns what withdraws the address. */
  async announce(url: string): Promise<{ close(): Promise<void> }> {
    const server: GatewayServer = { url, startedAt: Date.now() };
    const place = { namespace: serverSpace, key: url };
    const before = await this.#records.get(place);
    await this.#records.put({ ...place, value: server as unknown as JsonValue }, before?.version ?? "absent");
    return { close: () => this.#delete(serverSpace, url) };
  }

  /** Returns the addresses of gateways on this store. One whose process was killed may be among them. */
  async servers(): Promise<readonly string[]> {
    const found: string[] = [];
    for await (const { key } of this.#all(serverSpace)) found.push(key);
    return found;
  }

  async #delete(namespace: string, key: string): Promise<void> {
    const stored = await this.#records.get({ namespace, key });
    if (stored === undefined) return;
    const deleted = await this.#records.delete({ namespace, key }, stored.version);
    // Another process wrote the record meanwhile.
    if (deleted.kind === "conflict" && deleted.current !== undefined) await this.#delete(namespace, key);
  }

  async *#all(namespace: string): AsyncIterable<StoredRecord> {
    let after: string | undefined;
    do {
      const page = await this.#records.list({ namespace, ...(after !== undefined && { after }) });
      yield* page.records;
      after = page.next ?? undefined;
    } while (after !== undefined);
  }
}

function tokenOf({ key, value }: StoredRecord): GatewayToken {
  return { hash: key, ...(value as unknown as Omit<GatewayToken, "hash">) };
}

function runIn({ value }: StoredRecord): RunId {
  return parseRunId((value as { readonly runId: string }).runId);
}

function taken(name: string): Fault {
  return new Fault(
    "already_exists",
    `the gateway run ${name} exists and has not ended; use another --name, reeve gateway env ${name} -- COMMAND, or reeve gateway revoke ${name}`,
  );
}

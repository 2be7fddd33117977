import { createHmac, randomBytes } from "node:crypto";
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
  /** The last characters of the token's text, so that people can compare tokens. */
  readonly ending: string;
  readonly createdAt: number;
  /**
   * Time from which on the token is refused, in epoch milliseconds. `null` means that it is valid until its run
   * ends.
   */
  readonly expiresAt: number | null;
}

/** A process that serves gateway runs of the store. */
interface GatewayServer {
  readonly url: string;
  /** Time at which the process last reported that it is alive. */
  readonly seenAt: number;
  /**
   * A secret that the process must prove to know before a token is sent to it, because another process may have got
   * its port.
   */
  readonly secret: string;
  /** Fingerprints of the keys of its providers, so that a program does not inherit such a key under any name. */
  readonly keys: readonly string[];
}

/** How often a server reports that it is alive, and how long such a report is valid, in milliseconds. */
const sayEveryMs = 30_000;
const livesForMs = 4 * sayEveryMs;

/** What a server of the store proves with. */
export class ServerProof {
  readonly secret: string;

  constructor(secret: string = randomBytes(32).toString("base64url")) {
    this.secret = secret;
  }

  /** Answers a nonce. */
  answer(nonce: string): string {
    return this.#mark("nonce", nonce);
  }

  /** Whether another process has answered a nonce with the same secret. */
  isAnswer(nonce: string, answer: unknown): boolean {
    return typeof answer === "string" && hashOf(answer) === hashOf(this.answer(nonce));
  }

  /** Returns a fingerprint by which the key of a provider is recognised. It does not reveal the key. */
  markOf(key: string): string {
    return this.#mark("key", key).slice(0, 22);
  }

  #mark(kind: string, text: string): string {
    return createHmac("sha256", this.secret).update(`${kind} ${text}`).digest("base64url");
  }
}

/** A server that commands of other processes have found. */
export interface FoundServer {
  readonly url: string;
  readonly proof: ServerProof;
  readonly isKey: (value: string) => boolean;
}

const tokenSpace = "gateway-tokens";
const nameSpace = "gateway-names";
const serverSpace = "gateway-servers";

/** The tokens of gateway runs, in the records of a store. A token is stored as a hash. */
export class GatewayTokens {
  readonly #records: Records;
  readonly #now: () => number;

  /** `now` in epoch milliseconds. Default: `Date.now`. */
  constructor(records: Records, now: () => number = Date.now) {
    this.#records = records;
    this.#now = now;
  }

  /** Creates a token of a run and returns its text, which cannot be read again. */
  async create(
    runId: RunId,
    { expiresAt = null }: { readonly expiresAt?: number | null } = {},
  ): Promise<string> {
    const token = newToken();
    const value = { runId, ending: token.slice(-3), createdAt: this.#now(), expiresAt };
    await this.#records.put({ namespace: tokenSpace, key: hashOf(token), value }, "absent");
    return token;
  }

  /** Returns the token with this hash, or `undefined` if there is none or it has expired. */
  async find(hash: string): Promise<GatewayToken | undefined> {
    const stored = await this.#records.get({ namespace: tokenSpace, key: hash });
    const token = stored && tokenOf(stored);
    return token === undefined || (token.expiresAt ?? Infinity) <= this.#now() ? undefined : token;
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

  /** Deletes tokens of a run: the one with this text, or all. All servers then refuse them. */
  async revoke(runId: RunId, token?: string): Promise<void> {
    const hashes = token === undefined ? (await this.ofRun(runId)).map(({ hash }) => hash) : [hashOf(token)];
    for (const key of hashes) await this.#delete(tokenSpace, key);
  }

  /** Gives a name to a run that will be created. `isFree` says whether the run that now has the name has ended. */
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

  /**
   * Publishes the address of the gateway for commands of other processes. The gateway proves its identity with
   * `proof`. `keys` are those of its providers. Returns a function that withdraws the address.
   */
  async announce(
    url: string,
    proof: ServerProof,
    keys: readonly string[] = [],
  ): Promise<{ close(): Promise<void> }> {
    const say = async (): Promise<void> => {
      const server: GatewayServer = {
        url,
        seenAt: this.#now(),
        secret: proof.secret,
        keys: keys.map((key) => proof.markOf(key)),
      };
      const place = { namespace: serverSpace, key: url };
      const before = await this.#records.get(place);
      const value = server as unknown as JsonValue;
      await this.#records.put({ ...place, value }, before?.version ?? "absent");
    };
    await this.#forgetDead();
    await say();
    const timer = setInterval(() => {
      // The store may be closed already, or unavailable for a moment: the next time says it again.
      say().catch(() => undefined);
    }, sayEveryMs).unref();
    return {
      close: () => {
        clearInterval(timer);
        return this.#delete(serverSpace, url);
      },
    };
  }

  /** Returns the servers on this store that have recently reported that they are alive. */
  async servers(): Promise<readonly FoundServer[]> {
    const found: FoundServer[] = [];
    for await (const { value } of this.#all(serverSpace)) {
      const { url, seenAt, secret, keys } = value as unknown as GatewayServer;
      if (!this.#lives(seenAt)) continue;
      const proof = new ServerProof(secret);
      found.push({ url, proof, isKey: (text) => keys.includes(proof.markOf(text)) });
    }
    return found;
  }

  async #forgetDead(): Promise<void> {
    for await (const { key, value } of this.#all(serverSpace))
      if (!this.#lives((value as unknown as GatewayServer).seenAt)) await this.#delete(serverSpace, key);
  }

  /** Whether a server is alive. A record of an earlier version has no time. */
  #lives(seenAt: number | undefined): boolean {
    return this.#now() - (seenAt ?? 0) < livesForMs;
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

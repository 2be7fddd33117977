import { randomBytes, timingSafeEqual } from "node:crypto";
import { sha256Hex } from "../../../runtime/index.ts";
import {
  Fault,
  nameProblem,
  type JsonObject,
  type JsonValue,
  type Records,
  type StoredRecord,
} from "../../../kernel/index.ts";
import { scopes, type Access, type Scope } from "./access.ts";

/** Options of `Tokens.create`. */
export interface TokenOptions {
  /** Name for people, shown in lists. */
  readonly name: string;
  readonly scope: Scope;
  /** Tenant of the token. If absent, the token sees all tenants, which is allowed only for `admin` tokens. */
  readonly tenantId?: string;
  /** User of the tenant. If absent, the token sees all users of the tenant. */
  readonly userId?: string;
  /** Time from which the token is refused, in epoch milliseconds. If absent, it does not expire. */
  readonly expiresAt?: number;
}

/** A token as it is shown in lists. The secret is not stored. */
export interface TokenInfo {
  readonly tokenId: string;
  readonly name: string;
  readonly scope: Scope;
  readonly tenantId: string | null;
  readonly userId: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}

/** The tokens with which programs and pages use a server. */
export interface Tokens {
  /** Creates a token and returns its text, which cannot be read again later. */
  create(options: TokenOptions): Promise<{ readonly token: string; readonly info: TokenInfo }>;
  /** All tokens, oldest first. */
  list(): Promise<readonly TokenInfo[]>;
  /**
   * Revokes a token. From then on, requests with it are refused, and its open streams end. Returns whether the
   * token existed.
   */
  revoke(tokenId: string): Promise<boolean>;
  /** Returns the access of a token's text. `undefined` if the token is unknown, revoked or expired. */
  verify(token: string): Promise<Access | undefined>;
  /** Whether a token still exists. */
  isValid(tokenId: string): Promise<boolean>;
}

interface StoredToken extends Omit<TokenInfo, "tokenId"> {
  /**
   * SHA-256 of the secret part, in hexadecimal. The secret has 256 random bits, so a slow hash function would not
   * increase security.
   */
  readonly hash: string;
}

const namespace = "tokens";
const form = /^reeve_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/u;
const maxName = 100;

/** Tokens whose hashes are stored in the records of a store. Every process that opens the store accepts them. */
export function storedTokens(records: Records, now: () => number = Date.now): Tokens {
  if (typeof (records as Partial<Records> | null)?.put !== "function")
    throw new Fault(
      "invalid_argument",
      "invalid records of storedTokens(): expected the records of a store; use storedTokens(store.records)",
    );
  const find = async (tokenId: string): Promise<(StoredRecord & { value: JsonValue }) | undefined> =>
    records.get({ namespace, key: tokenId });
  const alive = ({ expiresAt }: Pick<TokenInfo, "expiresAt">): boolean =>
    expiresAt === null || now() < expiresAt;
  return {
    async create(options) {
      const stored = checked(options, now());
      const tokenId = randomBytes(8).toString("hex");
      const secret = randomBytes(32).toString("base64url");
      const value = { ...stored, hash: hashOf(secret) } satisfies StoredToken as unknown as JsonObject;
      const written = await records.put({ namespace, key: tokenId, value }, "absent");
      if (written.kind === "conflict") throw new Fault("internal", `token id ${tokenId} is taken`);
      return { token: `reeve_${tokenId}_${secret}`, info: { tokenId, ...stored } };
    },
    async list() {
      const found: TokenInfo[] = [];
      let after: string | undefined;
      do {
        const page = await records.list({ namespace, ...(after !== undefined && { after }) });
        found.push(...page.records.map(({ key, value }) => infoOf(key, value)));
        after = page.next ?? undefined;
      } while (after !== undefined);
      return found.toSorted((one, other) => one.createdAt - other.createdAt);
    },
    async revoke(tokenId) {
      const found = await find(tokenId);
      if (found === undefined) return false;
      return (await records.delete({ namespace, key: tokenId }, found.version)).kind === "deleted";
    },
    async verify(token) {
      const [, tokenId, secret] = form.exec(token) ?? [];
      if (tokenId === undefined || secret === undefined) return undefined;
      const found = await find(tokenId);
      if (found === undefined) return undefined;
      const stored = found.value as unknown as StoredToken;
      if (!isEqual(stored.hash, hashOf(secret)) || !alive(stored)) return undefined;
      const { name, scope, tenantId, userId } = stored;
      return { tokenId, name, scope, tenantId, userId };
    },
    async isValid(tokenId) {
      const found = await find(tokenId);
      return found !== undefined && alive(infoOf(tokenId, found.value));
    },
  };
}

function hashOf(secret: string): string {
  return sha256Hex(secret);
}

/** Compares two hashes in a time that is independent of their contents. */
function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one, "hex"), Buffer.from(other, "hex"));
}

function infoOf(tokenId: string, value: JsonValue): TokenInfo {
  const { name, scope, tenantId, userId, createdAt, expiresAt } = value as unknown as StoredToken;
  return { tokenId, name, scope, tenantId, userId, createdAt, expiresAt };
}

function checked(options: TokenOptions, createdAt: number): Omit<TokenInfo, "tokenId"> {
  const { name, scope, tenantId = null, userId = null, expiresAt = null } = options;
  if (typeof name !== "string" || name.trim() === "" || name.length > maxName)
    throw invalid("name", name, `a text of 1 to ${maxName} characters`);
  if (!scopes.includes(scope)) throw invalid("scope", scope, `one of ${scopes.join(", ")}`);
  for (const [field, value] of [
    ["tenant", tenantId],
    ["user", userId],
  ] as const) {
    const problem = value === null ? undefined : value === "" ? "it is empty" : nameProblem(value);
    if (problem !== undefined)
      throw new Fault("invalid_argument", `invalid ${field} of the token: ${problem}`);
  }
  if (tenantId === null && scope !== "admin")
    throw new Fault(
      "invalid_argument",
      `a token without a tenant sees the whole store, so its scope must be admin, not ${scope}; name a tenant`,
    );
  if (expiresAt !== null && (!Number.isSafeInteger(expiresAt) || expiresAt <= createdAt))
    throw invalid("expiresAt", expiresAt, "a later time in epoch milliseconds");
  return { name, scope, tenantId, userId, createdAt, expiresAt };
}

function invalid(field: string, value: unknown, expected: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid ${field} ${JSON.stringify(value)} of the token: expected ${expected}`,
  );
}

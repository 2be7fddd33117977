import { Fault } from "../../../../kernel/index.ts";
import { scopes, storedTokens, type Scope, type TokenInfo } from "../../../server/index.ts";
import type { ExitKind } from "../../terminal/exit-code.ts";
import { columns } from "../../terminal/format.ts";
import { openOwnStore } from "../../setup/own-store.ts";
import { withStore, type StoreOptions } from "../../setup/stored-runs.ts";
import { printable, type Terminal } from "../../terminal/terminal.ts";

export interface CreateTokenOptions extends StoreOptions {
  readonly name: string;
  readonly scope: string;
  readonly tenant?: string;
  readonly user?: string;
  readonly days?: string;
}

export interface ListTokensOptions extends StoreOptions {
  readonly json?: boolean;
}

const dayMs = 86_400_000;

/** Creates a token and prints its text, which cannot be shown a second time. */
export async function createToken(options: CreateTokenOptions, terminal: Terminal): Promise<ExitKind> {
  const { name, scope, tenant: tenantId, user: userId, days } = options;
  if (!scopes.includes(scope as Scope))
    throw new Fault("invalid_argument", `invalid --scope ${scope}: expected one of ${scopes.join(", ")}`);
  const store = await openOwnStore(options.store, { allowForeign: true });
  try {
    const { token, info } = await storedTokens(store.records).create({
      name,
      scope: scope as Scope,
      ...(tenantId !== undefined && { tenantId }),
      ...(userId !== undefined && { userId }),
      ...(days !== undefined && { expiresAt: Date.now() + daysOf(days) * dayMs }),
    });
    await terminal.out(token);
    terminal.say(`Token ${info.tokenId} is stored as a hash. Keep the text: it is not shown again.`);
  } finally {
    await store.close();
  }
  return "ok";
}

/** Prints the tokens, without their secrets. */
export function listTokens(
  { json = false, ...options }: ListTokensOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async ({ records }): Promise<ExitKind> => {
    const tokens = await storedTokens(records).list();
    const lines = json ? tokens.map((token) => JSON.stringify(token)) : columns(tokens.map(row));
    for (const line of lines) await terminal.out(line);
    if (!json) terminal.say(`Tokens: ${tokens.length}`);
    return "ok";
  });
}

function row({ tokenId, name, scope, tenantId, userId, createdAt, expiresAt }: TokenInfo): string[] {
  const owner = `${tenantId ?? "all tenants"}${userId === null ? "" : `, user ${userId}`}`;
  const until = expiresAt === null ? "" : `until ${new Date(expiresAt).toISOString()}`;
  return [tokenId, scope, printable(owner), printable(name), new Date(createdAt).toISOString(), until];
}

/** Revokes tokens. From then on, servers refuse them. */
export function revokeTokens(
  tokenIds: readonly string[],
  options: StoreOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  return withStore(options, terminal, async ({ records }): Promise<ExitKind> => {
    const tokens = storedTokens(records);
    const known = new Set((await tokens.list()).map(({ tokenId }) => tokenId));
    const unknown = tokenIds.find((tokenId) => !known.has(tokenId));
    if (unknown !== undefined)
      throw new Fault("not_found", `token ${printable(unknown)} not found; reeve token list shows the ids`);
    for (const tokenId of tokenIds) {
      await tokens.revoke(tokenId);
      await terminal.out(tokenId);
    }
    return "ok";
  });
}

function daysOf(text: string): number {
  const days = Number(text);
  if (text.trim() !== "" && Number.isFinite(days) && days > 0) return days;
  throw new Fault("invalid_argument", `invalid --days ${text}: expected a number above 0`);
}

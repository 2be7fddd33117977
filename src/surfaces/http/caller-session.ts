import { shortDigest } from "./short-digest.ts";
import { parseSessionId } from "../../kernel/index.ts";
import type { Access } from "./access/access.ts";
import type { RouteRequest } from "./route.ts";

const longestId = 256;

/**
 * Returns the id under which a session that a caller names is stored. Each tenant and user has separate session
 * ids, so that an id that another user uses behaves like a free id (rule S6). A session of the caller keeps its id;
 * any other name becomes `NAME@DIGEST`, with a digest of tenant and user. A caller without a tenant uses the stored
 * ids.
 */
export async function callerSession(
  { runtime, access: { tenantId, userId } }: Pick<RouteRequest, "runtime" | "access">,
  name: string,
): Promise<string> {
  if (tenantId === null) return name;
  const sessionId = parseSessionId(name);
  const end = endOf({ tenantId, userId });
  if (sessionId.endsWith(end)) return sessionId;
  if ((await runtime.sessions.get(sessionId)) !== undefined) return sessionId;
  // A session whose history is not retained has only runs.
  if ((await runtime.list({ sessionId, limit: 1 })).runs.length > 0) return sessionId;
  const own = sessionId.length + end.length > longestId ? `ses_${shortDigest(sessionId)}` : sessionId;
  return `${own}${end}`;
}

/** What the stored ids of the sessions of a caller end with, if the caller has named them. */
function endOf({ tenantId, userId }: Pick<Access, "tenantId" | "userId">): string {
  return `@${shortDigest(tenantId, userId)}`;
}

/** Returns the name that a caller has given a session, for the id under which it is stored. Reverses `callerSession`. */
export function shownSession(access: Pick<Access, "tenantId" | "userId">, sessionId: string): string {
  const end = endOf(access);
  const isNamed = access.tenantId !== null && sessionId.endsWith(end);
  return isNamed ? sessionId.slice(0, -end.length) : sessionId;
}

/**
 * Returns the checked values of a request. The `sessionId` that they contain is replaced by the stored id of the
 * session.
 */
export async function withCallerSession<Values>(
  request: Pick<RouteRequest, "runtime" | "access">,
  values: Values,
): Promise<Values> {
  const { sessionId: name } = (values ?? {}) as { readonly sessionId?: unknown };
  if (typeof name !== "string" || request.access.tenantId === null) return values;
  return { ...values, sessionId: await callerSession(request, name) };
}

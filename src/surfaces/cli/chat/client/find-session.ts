import { onlyMatch } from "../../setup/find-run.ts";
import { printable } from "../../terminal/terminal.ts";
import { unlessAbsent, type RouteClient } from "../../../client/route-client.ts";
import type { Result } from "../../../server/route-values.ts";

type SessionPage = Result<"GET", "/api/sessions">;

/** Yields the sessions of a server, the newest first. */
export async function* eachSession(client: RouteClient): AsyncIterable<SessionPage["sessions"][number]> {
  let after: string | null = null;
  do {
    const query = { limit: 200, ...(after !== null && { after }) };
    const page: SessionPage = await client.get("/api/sessions", { query });
    yield* page.sessions;
    after = page.next;
  } while (after !== null);
}

/**
 * Returns the id of the session that a person means by a text: the whole id, or a prefix with which only one
 * session id begins. A prefix takes O(sessions).
 */
export async function findSessionId(client: RouteClient, text: string): Promise<string> {
  const known = await unlessAbsent(client.get("/api/sessions/{sessionId}", { params: { sessionId: text } }));
  if (known !== undefined) return known.sessionId;
  const found: string[] = [];
  for await (const { sessionId } of eachSession(client))
    if (sessionId.startsWith(text)) found.push(sessionId);
  return onlyMatch(
    found,
    text,
    `session ${printable(text)} does not exist; /sessions and reeve sessions list show the sessions`,
  );
}

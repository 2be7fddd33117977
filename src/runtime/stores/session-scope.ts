import { Fault, type ApplyOptions, type SessionId } from "../../kernel/index.ts";

/** S6: creates the fault of a change to a session that does not exist for the caller. */
export function missingSession(sessionId: SessionId): Fault {
  return new Fault("not_found", `session ${sessionId} does not exist; choose another sessionId`, {
    details: { sessionId },
  });
}

/** Throws `not_found` if the session does not exist or has another current entry than `whenAt` expects. */
export function checkWhenAt(
  { sessionId, leafId }: NonNullable<ApplyOptions["whenAt"]>,
  session: { readonly leafId: string | null } | undefined,
): void {
  if (session === undefined)
    throw new Fault("not_found", `session ${sessionId} does not exist in this store`, {
      details: { sessionId },
    });
  if (leafId !== undefined && leafId !== session.leafId)
    throw new Fault(
      "not_found",
      `the conversation of session ${sessionId} no longer ends with entry ${leafId}: read its path and try again`,
      { details: { sessionId, leafId: session.leafId } },
    );
}

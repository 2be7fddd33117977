import { Fault, type SessionId } from "../../kernel/index.ts";

/** S6: fault of a change to a session that does not exist for the caller. */
export function missingSession(sessionId: SessionId): Fault {
  return new Fault("not_found", `session ${sessionId} does not exist; choose another sessionId`, {
    details: { sessionId },
  });
}

import type { AgentSession } from "../../kernel/index.ts";

/** Whether a reply is empty or only white space, so that it does not count as an answer. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/**
 * Makes a text the answer of the session. A blank text changes nothing and returns `false`, so that an empty reply
 * never replaces an earlier answer.
 */
export function setAnswer(session: AgentSession, text: string): boolean {
  if (isBlank(text)) return false;
  session.output = text;
  return true;
}

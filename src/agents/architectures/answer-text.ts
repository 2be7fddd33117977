import type { AgentSession } from "../../kernel/index.ts";

/** No answer to go on with. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

/** What was said is the answer by now. Whoever says nothing takes nothing back: then `false`, and the answer is what it was. */
export function setAnswer(session: AgentSession, text: string): boolean {
  if (isBlank(text)) return false;
  session.output = text;
  return true;
}

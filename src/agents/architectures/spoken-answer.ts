import type { AgentSession } from "../../kernel/index.ts";

/** No answer to go on with. */
export function isSilent(words: string): boolean {
  return words.trim() === "";
}

/** What was said is the answer by now. Whoever says nothing takes nothing back: then `false`, and the answer is what it was. */
export function takeAnswer(session: AgentSession, words: string): boolean {
  if (isSilent(words)) return false;
  session.output = words;
  return true;
}

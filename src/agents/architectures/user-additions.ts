import { messageText, type AgentSession } from "../../kernel/index.ts";

/** What a user said to a loop after its prompt, which was message number `from`: an attempt that begins anew is to know it, too. */
export function addedBy({ messages }: AgentSession, from: number): readonly string[] {
  return messages
    .slice(from + 1)
    .flatMap((message) => (message.role === "user" ? [messageText(message)] : []));
}

import { assertMadeJson, type ChatMessage, type SessionChange } from "../kernel/index.ts";

/** J10: what is to be said in sessions is JSON. Most of it are answers and results, which were looked at when they were recorded. */
export function assertReported(changes: readonly SessionChange[]): void {
  for (const change of changes) {
    if (change.type === "append" && change.entry.type === "message" && isRecorded(change.entry.message))
      continue;
    assertMadeJson(change, "an entry that the task reports");
  }
}

/** What is frozen was looked at by who froze it. */
function isRecorded(message: ChatMessage): boolean {
  if (message.role !== "tool") return Object.isFrozen(message);
  for (const { output, providerMetadata } of message.content)
    if (providerMetadata !== undefined || !Object.isFrozen(output)) return false;
  return true;
}

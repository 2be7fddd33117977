import {
  assertMadeJson,
  sealJson,
  type ChatMessage,
  type SessionChange,
  type TaskReport,
} from "../../kernel/index.ts";
import { checkReport } from "./context-options.ts";

/** J10: checks that a report is JSON. */
export function assertReported(report: TaskReport): void {
  checkReport(report);
  for (const member in report) {
    const value = report[member as keyof TaskReport];
    if (member === "sessions" || typeof value === "string" || value === undefined) continue;
    if (typeof value === "function") continue;
    sealJson(value, `the ${member} that the task reports`);
  }
  if (report.sessions !== undefined) assertEntries(report.sessions);
}

/** Checks reported session changes. Most contain replies and results, which were checked when they were recorded. */
function assertEntries(changes: readonly SessionChange[]): void {
  for (const change of changes) {
    if (change.type === "append" && change.entry.type === "message" && isRecorded(change.entry.message))
      continue;
    if (change.type === "say" && change.batch.messages.every(isRecorded)) continue;
    assertMadeJson(change, "an entry that the task reports");
  }
}

/** Whether a message is frozen and was therefore checked before. */
function isRecorded(message: ChatMessage): boolean {
  if (message.role !== "tool") return Object.isFrozen(message);
  for (const { output, providerMetadata } of message.content)
    if (providerMetadata !== undefined || !Object.isFrozen(output)) return false;
  return true;
}

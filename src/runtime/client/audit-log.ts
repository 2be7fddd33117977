import {
  parseRunId,
  type AuditEntry,
  type AuditLog,
  type AuditReadOptions,
  type Event,
  type EventType,
  type JsonObject,
  type JsonValue,
  type LogVerdict,
  type Store,
} from "../../kernel/index.ts";
import { anonymousUser } from "../process/worker-context.ts";

/** Of one text, unless asked for in full. */
const maxChars = 500;

/** How each order says who gave it. What is not here, an agent did. */
const orderedBy: { readonly [Type in EventType]?: (event: Event<Type>) => string | undefined } = {
  run_start: ({ data }) => data.by,
  run_fork: ({ data }) => data.by,
  run_pause: ({ data }) => data.by,
  run_resume: ({ data }) => data.by,
  run_cancel: ({ data }) => data.by,
  run_steer: ({ data }) => data.by,
  task_signal: ({ data }) => data.by,
  task_reprioritize: ({ data }) => data.by,
  budget_top_up: ({ data }) => data.by,
  // What comes by mail has a name; what has none, a handler in the owner's process said.
  approval_decision: ({ data }) => data.decision.by ?? "approval handler",
};

/** The audit of the runs in a store. */
export function auditLog({ events }: Pick<Store, "events">): AuditLog {
  return {
    async *read(runId: string, { fromSeq = 0, full = false, outsideOnly = false }: AuditReadOptions = {}) {
      for await (const event of events.read(parseRunId(runId), fromSeq)) {
        const entry = auditEntry(event, full);
        if (entry.fromOutside || !outsideOnly) yield entry;
      }
    },
    async verify(runId: string, head?: string): Promise<LogVerdict> {
      const verdict = await events.verify(parseRunId(runId), head);
      // A tail cut at its very beginning needs no head to be seen.
      if (verdict.ok && verdict.events === 0)
        return { ok: false, seq: 0, problem: "the log is empty: every run begins with run_start" };
      return verdict;
    },
  };
}

function auditEntry(event: Event, full: boolean): AuditEntry {
  const { runId, seq, at, taskId, agentId, type, data } = event;
  const by = orderedBy[type] as ((order: Event) => string | undefined) | undefined;
  const details = data as unknown as JsonObject;
  return {
    runId,
    seq,
    at,
    taskId,
    actor: by === undefined ? agentId : (by(event) ?? anonymousUser),
    fromOutside: by !== undefined,
    action: type,
    details: full ? details : (shortened(details) as JsonObject),
  };
}

function shortened(value: JsonValue): JsonValue {
  if (typeof value === "string") return shortText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(shortened);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shortened(each)]));
}

function shortText(text: string): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars)} [... ${text.length - maxChars} characters left out]`;
}

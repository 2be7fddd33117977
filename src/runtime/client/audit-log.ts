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
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";
import { anonymousUser } from "../process/worker-context.ts";
import { scoreEntry } from "./run-scores.ts";

/** Maximum length of a text in an entry, unless the caller requests full entries. */
const maxChars = 500;

/**
 * Returns the actor of an event, for each event type that a command from outside the run causes. All other events
 * are caused by an agent.
 */
const actorOf: { readonly [Type in EventType]?: (event: Event<Type>) => string | undefined } = {
  run_start: ({ data }) => data.by,
  run_fork: ({ data }) => data.by,
  run_pause: ({ data }) => data.by,
  run_resume: ({ data }) => data.by,
  run_cancel: ({ data }) => data.by,
  task_cancel: ({ data }) => data.by,
  run_steer: ({ data }) => data.by,
  input_withdraw: ({ data }) => data.by,
  task_signal: ({ data }) => data.by,
  update_start: ({ data }) => data.by,
  task_reprioritize: ({ data }) => data.by,
  budget_top_up: ({ data }) => data.by,
  usage_corrected: ({ data }) => data.by,
  // A decision that arrived by mail has a `by`. Otherwise an approval handler in the owner's process decided.
  approval_decision: ({ data }) => data.decision.by ?? "approval handler",
};

const readOptionTable = optionTable({
  fromSeq: is.number({ default: 0 }),
  full: is.boolean({ default: false }),
  outsideOnly: is.boolean({ default: false }),
} satisfies OptionKinds<AuditReadOptions>);

/** Returns the audit log of the runs in a store: who did what, and whether the log is intact. */
export function auditLog({ events, scores }: Pick<Store, "events" | "scores">): AuditLog {
  return {
    async *read(runId: string, options: AuditReadOptions = {}) {
      const { fromSeq, full, outsideOnly } = readOptionTable.read("read() of an audit log", options);
      for await (const event of events.read(parseRunId(runId), fromSeq)) {
        const entry = auditEntry(event, full);
        if (entry.fromOutside || !outsideOnly) yield entry;
      }
      for (const score of await scores.list(parseRunId(runId))) {
        const entry = scoreEntry(parseRunId(runId), score);
        yield full ? entry : { ...entry, details: shorten(entry.details) as JsonObject };
      }
    },
    async verify(runId: string, head?: string): Promise<LogVerdict> {
      const verdict = await events.verify(parseRunId(runId), head);
      // A log without any event has been truncated, which is visible without a stored head.
      if (verdict.ok && verdict.events === 0)
        return { ok: false, seq: 0, problem: "the log is empty: the log of a run starts with run_start" };
      return verdict;
    },
  };
}

function auditEntry(event: Event, full: boolean): AuditEntry {
  const { runId, seq, at, taskId, agentId, type, data } = event;
  const actor = actorOf[type] as ((command: Event) => string | undefined) | undefined;
  const details = data as unknown as JsonObject;
  return {
    runId,
    seq,
    at,
    taskId,
    actor: actor === undefined ? agentId : (actor(event) ?? anonymousUser),
    fromOutside: actor !== undefined,
    action: type,
    details: full ? details : (shorten(details) as JsonObject),
  };
}

function shorten(value: JsonValue): JsonValue {
  if (typeof value === "string") return shortenText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(shorten);
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shorten(each)]));
}

function shortenText(text: string): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars)} [... ${text.length - maxChars} characters left out]`;
}

import type { Event, EventType, Failure, JsonValue } from "../../src/kernel/index.ts";
import { rootId } from "./money.ts";

/** The events of which the steps of a workflow are made. */
export const stepTypes: readonly EventType[] = [
  "step_end",
  "step_retry",
  "task_suspend",
  "task_wake",
  "task_signal",
  "update_start",
  "update_end",
  "value_published",
  "compensation_start",
  "compensation_end",
];

/** One attempt of a step. */
interface Attempt {
  readonly durationMs: number;
  readonly isFailed: boolean;
  /** Why it failed, if another one follows. */
  readonly failure: Failure | null;
  /** Milliseconds until the next attempt. */
  readonly delayMs: number;
}

/** A line of the list of steps. */
export type StepRow =
  | {
      readonly kind: "step";
      readonly seq: number;
      readonly at: number;
      readonly name: string;
      readonly attempts: readonly Attempt[];
      readonly state: "done" | "failed" | "retries";
      /** Whether it undoes earlier work. */
      readonly isUndo: boolean;
    }
  | {
      readonly kind: "wait";
      readonly seq: number;
      readonly at: number;
      readonly name: string;
      readonly ms: number;
    }
  | { readonly kind: "note"; readonly seq: number; readonly at: number; readonly text: string }
  | { readonly kind: "undo"; readonly seq: number; readonly at: number; readonly names: readonly string[] };

/** What a workflow waits for now. */
export interface OpenWaits {
  readonly since: number;
  /** End of the timer in epoch milliseconds. `null` if there is no timer. */
  readonly until: number | null;
  readonly signals: readonly string[];
  readonly updates: readonly string[];
  /** Keys of promises. */
  readonly promises: readonly string[];
}

export interface WorkflowSteps {
  readonly rows: readonly StepRow[];
  readonly waits: OpenWaits | null;
  /** The last value of each name that was published. */
  readonly values: ReadonlyMap<string, JsonValue>;
}

type Step = Extract<StepRow, { readonly kind: "step" }>;

/** Makes the steps of a workflow from the events of its root, up to an event. */
export function stepsOf(events: readonly Event[], until: number): WorkflowSteps {
  const rows: StepRow[] = [];
  /** The place of the last line of each step that has not succeeded. */
  const unfinished = new Map<string, number>();
  const values = new Map<string, JsonValue>();
  let suspend: Event<"task_suspend"> | null = null;
  let isUndoing = false;
  const lastOf = (name: string): Step | undefined => {
    const place = unfinished.get(name);
    return place === undefined ? undefined : (rows[place] as Step);
  };
  for (const event of events) {
    if (event.seq > until || event.taskId !== rootId) continue;
    const { seq, at } = event;
    switch (event.type) {
      case "step_end": {
        const { name, durationMs, status } = event.data;
        const isFailed = status === "error";
        const attempt: Attempt = { durationMs, isFailed, failure: null, delayMs: 0 };
        const before = lastOf(name);
        const state = isFailed ? "failed" : "done";
        if (before?.state === "retries")
          rows[unfinished.get(name) ?? 0] = { ...before, state, attempts: [...before.attempts, attempt] };
        else {
          unfinished.set(name, rows.length);
          rows.push({ kind: "step", seq, at, name, state, attempts: [attempt], isUndo: isUndoing });
        }
        if (!isFailed) unfinished.delete(name);
        break;
      }
      case "step_retry": {
        const { name, failure, delayMs } = event.data;
        const before = lastOf(name);
        const failed = before?.attempts.at(-1);
        if (before === undefined || failed === undefined) break;
        const attempts = [...before.attempts.slice(0, -1), { ...failed, failure, delayMs }];
        rows[unfinished.get(name) ?? 0] = { ...before, state: "retries", attempts };
        break;
      }
      case "task_suspend":
        suspend = event;
        break;
      case "task_wake":
        // The wait between two attempts is a part of their step.
        if (suspend !== null && ![...unfinished.keys()].some((name) => lastOf(name)?.state === "retries"))
          rows.push({ kind: "wait", seq, at, name: waitWords(suspend.data), ms: at - suspend.at });
        suspend = null;
        break;
      case "task_signal":
        rows.push({ kind: "note", seq, at, text: `${arrivalWords(event.data.name)} by ${event.data.by}` });
        break;
      case "update_start":
        rows.push({ kind: "note", seq, at, text: `Update ${event.data.name} sent by ${event.data.by}` });
        break;
      case "update_end":
        rows.push({ kind: "note", seq, at, text: `Update ${event.data.name} ${event.data.reply.status}` });
        break;
      case "value_published":
        values.set(event.data.name, event.data.value);
        break;
      case "compensation_start":
        isUndoing = true;
        rows.push({ kind: "undo", seq, at, names: event.data.names });
        break;
      default:
    }
  }
  return { rows, waits: suspend === null ? null : waitsOf(suspend), values };
}

function waitsOf({ at, data: { waitsFor, until } }: Event<"task_suspend">): OpenWaits {
  const named = (kind: string): readonly string[] =>
    waitsFor.flatMap((wait) => (wait.startsWith(`${kind} `) ? [wait.slice(kind.length + 1)] : []));
  return {
    since: at,
    until,
    signals: named("signal"),
    updates: named("update"),
    promises: named("promise"),
  };
}

function arrivalWords(name: string): string {
  return name.startsWith("promise ") ? "A promise settled" : `Signal ${name} sent`;
}

function waitWords({ waitsFor, until }: Event<"task_suspend">["data"]): string {
  const [first] = waitsFor;
  if (first === undefined || first.startsWith("sleep")) return until === null ? "Waited" : "Slept";
  return first.startsWith("promise ") ? "Waited for a promise" : `Waited for ${first}`;
}

/** The id by which a promise of the root is settled. */
export function promiseIdOf(runId: string, key: string): string {
  const bytes = new TextEncoder().encode(JSON.stringify([runId, rootId, key]));
  const text = btoa(String.fromCharCode(...bytes));
  return `prm_${text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

import { canonicalJson, type Event, type EventType, type JsonObject } from "../kernel/index.ts";

/**
 * Types of events that depend on a crash or on timing and are not compared: recovery, unreported calls, and waits
 * of a task, which depend on the timing.
 */
const ofRecovery: ReadonlySet<EventType> = new Set([
  "run_recover",
  "budget_lost",
  "usage_corrected",
  "task_suspend",
  "task_wake",
]);
/**
 * Types of events that are emitted when mail is read. Their order is fixed, but not their position among the events
 * of tasks.
 */
const ofOrders: ReadonlySet<EventType> = new Set([
  "run_pause",
  "run_resume",
  "run_cancel",
  "task_cancel",
  "run_steer",
  "input_withdraw",
  "task_signal",
  "update_start",
  "task_reprioritize",
  "budget_top_up",
]);
/**
 * Names of event data that are not compared: times, sequence numbers, ids of inputs, and spend. Spend includes
 * unreported calls and is checked against the ledger instead.
 */
const ofTheMoment: ReadonlySet<string> = new Set([
  "durationMs",
  "delayMs",
  "until",
  "at",
  "turns",
  "costUsd",
  "lost",
  "inputId",
]);

export interface CompareOptions {
  readonly ignore?: readonly EventType[];
  /**
   * `true` if branches of one task run concurrently, so that their order depends on timing. Tasks are then identified
   * by their agents and inputs from the root down instead of by their number, and the events of a task are compared without their
   * order.
   */
  readonly sideBySide?: boolean;
}

/**
 * Compares a log with the log of an undisturbed run and returns one sentence for each strand in which an event is
 * missing, duplicated, different or out of order. Tasks, the calls of one tool batch, the changes of seats and the
 * orders from outside are separate strands, because they run concurrently. Within a strand the order must match, and a
 * call must lie between the same events of its task.
 */
export function compareLogs(
  expected: readonly Event[],
  actual: readonly Event[],
  { ignore = [], sideBySide = false }: CompareOptions = {},
): readonly string[] {
  const left = new Set([...ofRecovery, ...ignore]);
  const strandsOf = sideBySide ? unorderedStrands : strands;
  const [want, have] = [strandsOf(expected, left), strandsOf(actual, left)];
  const differences: string[] = [];
  for (const name of new Set([...want.keys(), ...have.keys()])) {
    const [wanted, had] = [want.get(name) ?? [], have.get(name) ?? []];
    const place = Array.from({ length: Math.max(wanted.length, had.length) }).findIndex(
      (_, index) => wanted[index] !== had[index],
    );
    if (place < 0) continue;
    const shown = (text: string | undefined): string => text?.slice(0, 240) ?? "nothing";
    differences.push(`${name}: event ${place} is ${shown(had[place])} and not ${shown(wanted[place])}`);
  }
  return differences;
}

/**
 * S5: the id of an unnamed session ends in a random part that is drawn when the run is submitted. A process that dies
 * before the id is stored draws a new one, so this part is removed before comparing.
 */
const drawn = /("ses_run_[A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{1,64}(?=["#])/gu;

function textOf(told: object): string {
  return canonicalJson(told).replaceAll(drawn, "$1");
}

/**
 * Describes the first event whose sequence number is not its position in the log (rule E1). Returns `undefined` if
 * there is no such event.
 */
export function findGap(events: readonly Event[]): string | undefined {
  const place = events.findIndex(({ seq }, index) => seq !== index);
  return place < 0 ? undefined : `at place ${place} stands seq ${events[place]?.seq}`;
}

function strands(events: readonly Event[], ignore: ReadonlySet<EventType>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const put = (strand: string, text: string): number => {
    const strandSoFar = found.get(strand) ?? [];
    found.set(strand, strandSoFar);
    return strandSoFar.push(text);
  };
  for (const event of events) {
    if (ignore.has(event.type)) continue;
    const { taskId, type, agentId, parentId } = event;
    const text = `${type} ${textOf({ agentId, parentId, data: lasting(event.data) })}`;
    if (event.type === "tool_execution_start" || event.type === "tool_execution_end") {
      const before = found.get(taskId)?.length ?? 0;
      put(`${taskId} call ${event.data.callId}`, `${text} after ${before} events of its task`);
    } else if (ofOrders.has(type)) put("orders", text);
    else put(type.startsWith("seat_") ? `${taskId} seats` : taskId, text);
  }
  return found;
}

function unorderedStrands(events: readonly Event[], ignore: ReadonlySet<EventType>): Map<string, string[]> {
  const names = taskNames(events);
  const found = new Map<string, string[]>();
  for (const { type, taskId, agentId, parentId, data } of events) {
    if (ignore.has(type)) continue;
    const name = names.get(taskId) ?? taskId;
    const parent = parentId === null ? null : (names.get(parentId) ?? parentId);
    const told = lasting(data);
    const named = Object.entries(told).map(([key, value]) => [key, names.get(value as string) ?? value]);
    const text = `${type} ${textOf({ agentId, parent, data: Object.fromEntries(named) as JsonObject })}`;
    found.set(name, [...(found.get(name) ?? []), text]);
  }
  for (const [name, texts] of found) found.set(name, texts.toSorted());
  return found;
}

/**
 * Names each task by the agents and inputs from the root down, because the order in which branches start tasks depends on
 * timing. Several tasks of one agent with the same input under the same parent are numbered.
 */
function taskNames(events: readonly Event[]): Map<string, string> {
  const inputs = new Map<string, string>();
  for (const { type, taskId, data } of events)
    if (type === "agent_start" && !inputs.has(taskId)) inputs.set(taskId, ` ${canonicalJson(data.input)}`);
  const names = new Map<string, string>();
  const taken = new Map<string, number>();
  for (const { type, taskId, agentId, parentId } of events) {
    if (type !== "task_start" || names.has(taskId)) continue;
    const above = parentId === null ? "" : `${names.get(parentId) ?? parentId} > `;
    const name = `${above}${agentId}${inputs.get(taskId) ?? ""}`;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    names.set(taskId, `${name}${count === 1 ? "" : ` ${count}`}`);
  }
  return names;
}

function lasting(data: object): object {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !ofTheMoment.has(name)));
}

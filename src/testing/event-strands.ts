import { canonicalJson, type Event, type EventType, type JsonObject } from "../kernel/index.ts";

/** Told only where something was lost, so not to be found where nothing was; or where a task was there before what it waits for. */
const ofRecovery: ReadonlySet<EventType> = new Set([
  "run_recover",
  "budget_lost",
  "task_suspend",
  "task_wake",
]);
/** Told when mail is read: its order holds, its place among what the tasks do does not. */
const ofOrders: ReadonlySet<EventType> = new Set([
  "run_pause",
  "run_resume",
  "run_cancel",
  "run_steer",
  "task_signal",
  "task_reprioritize",
  "budget_top_up",
]);
/** Of an event's data: times, seqs, and what the run spent, lost calls included; the ledger is asked for that. */
const ofTheMoment: ReadonlySet<string> = new Set([
  "durationMs",
  "delayMs",
  "until",
  "at",
  "turns",
  "costUsd",
  "lost",
]);

export interface CompareOptions {
  readonly ignore?: readonly EventType[];
  /**
   * Tasks have branches that go side by side: which of them is first depends on the moment. So tasks are known by whose they are and not
   * by their number, and what a task tells is compared, not in which order.
   */
  readonly sideBySide?: boolean;
}

/**
 * How a log differs from that of the run that nothing happened to: a sentence for each strand of each task in which an event is missing,
 * told twice, different or out of order. Side by side go tasks, the calls of one batch of tools, the moves of seats and the orders from
 * outside; within each strand the order holds, and a call stands between the same events of its task.
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

/** The name of a session that nobody named has a part drawn when its run is submitted (S5): whoever dies before that is stored draws again. */
const drawn = /("ses_run_[A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{1,64}(?=["#])/gu;

function textOf(told: object): string {
  return canonicalJson(told).replaceAll(drawn, "$1");
}

/** E1: the first seq that is not where it belongs. */
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

/** By whose they are: the agents from the root down, numbered where an employer has several of one. */
function taskNames(events: readonly Event[]): Map<string, string> {
  const names = new Map<string, string>();
  const taken = new Map<string, number>();
  for (const { type, taskId, agentId, parentId } of events) {
    if (type !== "task_start" || names.has(taskId)) continue;
    const above = parentId === null ? "" : `${names.get(parentId) ?? parentId} > `;
    const count = (taken.get(`${above}${agentId}`) ?? 0) + 1;
    taken.set(`${above}${agentId}`, count);
    names.set(taskId, `${above}${agentId}${count === 1 ? "" : ` ${count}`}`);
  }
  return names;
}

function lasting(data: object): object {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !ofTheMoment.has(name)));
}

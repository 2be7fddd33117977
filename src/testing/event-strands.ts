import { canonicalJson, type Event, type EventType } from "../kernel/index.ts";

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

/**
 * How a log differs from that of the run that nothing happened to: a sentence for each strand of each task in which an event is missing,
 * told twice, different or out of order. Side by side go tasks, the calls of one batch of tools, the moves of seats and the orders from
 * outside; within each strand the order holds, and a call stands between the same events of its task.
 */
export function compareLogs(
  expected: readonly Event[],
  actual: readonly Event[],
  ignored: readonly EventType[] = [],
): readonly string[] {
  const ignore = new Set([...ofRecovery, ...ignored]);
  const [want, have] = [strands(expected, ignore), strands(actual, ignore)];
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
    const text = `${type} ${canonicalJson({ agentId, parentId, data: lasting(event.data) })}`;
    if (event.type === "tool_execution_start" || event.type === "tool_execution_end") {
      const before = found.get(taskId)?.length ?? 0;
      put(`${taskId} call ${event.data.callId}`, `${text} after ${before} events of its task`);
    } else if (ofOrders.has(type)) put("orders", text);
    else put(type.startsWith("seat_") ? `${taskId} seats` : taskId, text);
  }
  return found;
}

function lasting(data: object): object {
  return Object.fromEntries(Object.entries(data).filter(([name]) => !ofTheMoment.has(name)));
}

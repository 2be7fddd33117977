import { describeValue } from "../base/describe-value.ts";
import { Fault } from "../base/fault.ts";
import { nearestName } from "../base/option-table.ts";

/**
 * The priority of a task. The value is its weight: if several tasks wait for the same budget, a CRITICAL task is
 * served four times as often as a NORMAL one (trap R18). A BACKGROUND task is served only when no other task waits.
 */
export const Priority = Object.freeze({
  BACKGROUND: 0,
  LOW: 1,
  NORMAL: 2,
  HIGH: 4,
  CRITICAL: 8,
});

export type Priority = (typeof Priority)[keyof typeof Priority];
export type PriorityName = keyof typeof Priority;

/** All priorities, from the highest to the lowest. */
export const priorities: readonly Priority[] = Object.freeze([8, 4, 2, 1, 0]);

const names = Object.freeze(Object.keys(Priority)) as readonly PriorityName[];

export function formatPriority(priority: Priority): PriorityName {
  const name = names.find((each) => Priority[each] === priority);
  if (name === undefined) throw refused(priority, "");
  return name;
}

/** Parses a name in capitals, or a weight. */
export function parsePriority(value: unknown): Priority {
  const known =
    typeof value === "string" ? priorityNamed(value) : priorities[priorities.indexOf(value as Priority)];
  if (known !== undefined) return known;
  const nearest = typeof value === "string" ? nearestName(value, names) : undefined;
  throw refused(value, nearest === undefined ? "" : `; use Priority.${nearest}`);
}

function priorityNamed(text: string): Priority | undefined {
  const name = names.find((each) => each === text);
  return name && Priority[name];
}

/**
 * Returns the fault for a wrong priority. It is a function of its own, so that the page, which formats priorities
 * and parses none, need not load the search for similar names.
 */
function refused(value: unknown, hint: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid priority ${describeValue(value)}: expected one of ${names.join(", ")}${hint}`,
  );
}

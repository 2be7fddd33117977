/** Status of a task. The last three are final. */
export const taskStatuses = Object.freeze([
  /** Created, and waiting for a seat or a slot. */
  "pending",
  "running",
  /** Waits for something; keeps its seat. */
  "suspended",
  /** Must pause and finishes its calls in flight first (H7). */
  "pausing",
  /** Holds no seat until it is recalled. */
  "paused",
  "completed",
  "failed",
  "cancelled",
] as const);

/** Status of a task. */
export type TaskStatus = (typeof taskStatuses)[number];

/** Whether a task with this status has ended. */
export function isFinal(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Where a task stands. The last three are final. */
export const taskStatuses = Object.freeze([
  /** Created, or promised a seat it does not have yet. */
  "pending",
  "running",
  /** Waits for something; keeps its seat. */
  "suspended",
  /** Told to pause, finishing the calls it is in (H7). */
  "pausing",
  /** Without a seat, until recalled. */
  "paused",
  "completed",
  "failed",
  "cancelled",
] as const);

export type TaskStatus = (typeof taskStatuses)[number];

export function isFinal(status: TaskStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

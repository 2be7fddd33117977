import type { StepRecord } from "../../kernel/index.ts";

/** What tells one step from another: its address, and what the code says it is. */
export type StepIdentity = Omit<StepRecord, "outcome" | "taskId">;

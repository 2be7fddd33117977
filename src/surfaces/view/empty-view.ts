import { Priority, type RunId, type SessionId, type TaskId } from "../../kernel/index.ts";
import type { MoneyLine, QuestionView, RunView, TaskView } from "./run-view.ts";
import { noSpend } from "./spend.ts";
import { VersionedMap } from "./versioned-map.ts";

/** What a task has at its first event. */
export const newTask = {
  children: 0,
  priority: Priority.NORMAL,
  status: "running",
  budget: null,
  own: noSpend,
  total: noSpend,
  hasSeat: false,
  yieldsTo: null,
  waitsFor: [],
  questions: 0,
  openCalls: 0,
  lastCall: null,
  model: null,
  result: null,
  cancelled: null,
  stoppedAt: null,
  recorded: 0,
  recordedUsd: 0,
  endedAt: null,
} as const;

/** The view of a run without events. */
export const emptyView: RunView = {
  runId: "" as RunId,
  agentId: "",
  sessionId: "" as SessionId,
  input: null,
  status: "pending",
  output: null,
  failure: null,
  cancelled: null,
  startedAt: 0,
  endedAt: null,
  seq: -1,
  at: 0,
  seats: 0,
  maxSeats: null,
  live: 0,
  active: 0,
  recorded: 0,
  recordedUsd: 0,
  questions: 0,
  results: 0,
  messages: 0,
  recoveries: [],
  waits: [],
  crashLoop: null,
  isUndone: false,
  forkedFrom: null,
  tasks: new VersionedMap<TaskId, TaskView>(),
  money: new VersionedMap<string, MoneyLine>(),
  asked: new VersionedMap<string, QuestionView>(),
};

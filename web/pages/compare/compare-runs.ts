import { argumentOf } from "../../../src/surfaces/view/excerpt.ts";
import { messageText, type Event, type TaskId } from "../../../src/kernel/index.ts";
import { RunFold } from "../../../src/surfaces/view/run-fold.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import { StepLog, type StepView } from "../../../src/surfaces/view/step-log.ts";
import { oneLine, shortModel } from "../../base/format.ts";
import { inTreeOrder, toolTitle } from "../../../src/surfaces/view/task-words.ts";
import { outputText } from "../../model/thread.ts";

/** A step of one of two runs, with what it answered. */
export interface ComparedStep {
  readonly step: StepView;
  readonly words: string;
  readonly answer: string;
}

/** One run with its steps by agent. */
export interface ComparedRun {
  readonly view: RunView;
  /** The steps of each agent, by its place in the tree. */
  readonly agents: ReadonlyMap<string, { readonly agentId: string; readonly steps: readonly ComparedStep[] }>;
  readonly steps: number;
}

/** What a fork has from its origin, or two forks from the same one. */
export interface SharedRow {
  readonly kind: "shared";
  /** Number of agents whose steps these are, and the first of them. */
  readonly agents: number;
  readonly agentId: string;
  readonly steps: number;
  readonly costUsd: number;
  /** The last event that the runs share. */
  readonly at: number;
  /** The runs that did not pay for these steps. */
  readonly free: readonly ("a" | "b")[];
}

/** One line of a comparison. */
export type ComparedRow =
  | SharedRow
  | {
      readonly kind: "same" | "differs";
      readonly agentId: string;
      readonly a: ComparedStep;
      readonly b: ComparedStep;
    }
  | { readonly kind: "only-a"; readonly agentId: string; readonly a: ComparedStep }
  | { readonly kind: "only-b"; readonly agentId: string; readonly b: ComparedStep };

export function readRun(events: readonly Event[]): ComparedRun {
  const fold = new RunFold();
  const log = new StepLog();
  const byEnd = new Map<number, Event>();
  const byStart = new Map<number, Event>();
  const byCall = new Map<string, Event>();
  for (const event of events) {
    fold.add(event);
    log.add(event);
    if (event.type === "message_end" || event.type === "tool_execution_end") byEnd.set(event.seq, event);
    if (event.type !== "tool_execution_start") continue;
    byStart.set(event.seq, event);
    // A call that goes on in a fork, or after a top-up, has no start of its own.
    byCall.set(`${event.taskId} ${event.data.callId}`, event);
  }
  const view = fold.view();
  const agents = new Map<string, { agentId: string; steps: readonly ComparedStep[] }>();
  for (const task of inTreeOrder(view)) {
    const steps = log
      .of(task.taskId)
      .filter((step) => (step.kind === "model" || step.kind === "tool") && !isCutByFork(step, view))
      .map((step) =>
        comparedStep(
          step,
          byStart.get(step.startSeq) ?? byCall.get(`${step.taskId} ${step.id}`),
          step.endSeq === null ? undefined : byEnd.get(step.endSeq),
        ),
      );
    agents.set(placeOf(task.taskId, view, agents), { agentId: task.agentId, steps });
  }
  return { view, agents, steps: view.results };
}

/** Names a task by its agent and by how many tasks of that agent come before it. */
function placeOf(taskId: TaskId, view: RunView, known: ReadonlyMap<string, unknown>): string {
  const name = view.tasks.get(taskId)?.agentId ?? taskId;
  for (let number = 0; ; number++) if (!known.has(`${name} ${number}`)) return `${name} ${number}`;
}

function comparedStep(step: StepView, start: Event | undefined, end: Event | undefined): ComparedStep {
  if (step.kind === "tool") {
    const input = start?.type === "tool_execution_start" ? start.data.input : null;
    const answer = end?.type === "tool_execution_end" ? outputText(end.data.result.output) : "";
    const words = `${toolTitle(step.name, null)} ${argumentOf(input)}`.trim();
    return { step, words, answer: `${JSON.stringify(input)}\n${answer}` };
  }
  if (end === undefined) return { step, words: `not answered · ${shortModel(step.name)}`, answer: "" };
  const text = end.type === "message_end" ? oneLine(messageText(end.data.message)) : "";
  const content = end.type === "message_end" ? contentOf(end.data.message) : "";
  return { step, words: `${text === "" ? "calls tools" : text} · ${shortModel(step.name)}`, answer: content };
}

/** A fork makes a call again that was in flight in its origin. Only the second one has an answer to compare. */
function isCutByFork({ endSeq, outcome }: StepView, { forkedFrom }: RunView): boolean {
  return outcome === "cut" && forkedFrom !== null && endSeq === forkedFrom.at + 1;
}

/** What a model answered, without the ids of calls, which differ in every answer. */
function contentOf(message: Event<"message_end">["data"]["message"]): string {
  if (typeof message.content === "string") return message.content;
  return message.content
    .map((part) => {
      if (part.type === "text") return part.text;
      return part.type === "tool_call" ? `${part.toolName} ${JSON.stringify(part.input)}` : "";
    })
    .join("\n");
}

const before = 12;
const after = 60;

/** What two steps that differ look like. If they have the same words, the part of their answers that differs follows. */
export function differingWords(a: ComparedStep, b: ComparedStep): readonly [string, string] {
  if (a.words !== b.words || a.answer === b.answer) return [a.words, b.words];
  let at = 0;
  while (at < a.answer.length && a.answer[at] === b.answer[at]) at++;
  const from = Math.max(0, at - before);
  const part = ({ words, answer }: ComparedStep): string => {
    const text = oneLine(answer.slice(from, at + after));
    return text === "" ? `${words}: no answer` : `${words}: ${from > 0 ? "…" : ""}${text}`;
  };
  return [part(a), part(b)];
}

/** Aligns the steps of two runs by agent and position. What a fork shares with its origin is one line. */
export function compareRuns(a: ComparedRun, b: ComparedRun): readonly ComparedRow[] {
  const shared = sharedPart(a.view, b.view);
  const isShared = ({ step }: ComparedStep): boolean =>
    shared !== null && step.endSeq !== null && step.endSeq <= shared.at;
  const rows: ComparedRow[] = [];
  const sharing = new Set<string>();
  let [steps, costUsd] = [0, 0];
  for (const place of new Set([...a.agents.keys(), ...b.agents.keys()])) {
    const [left, right] = [a.agents.get(place), b.agents.get(place)];
    const agentId = left?.agentId ?? right?.agentId ?? place;
    const length = Math.max(left?.steps.length ?? 0, right?.steps.length ?? 0);
    for (let at = 0; at < length; at++) {
      const [one, other] = [left?.steps[at], right?.steps[at]];
      if (one !== undefined && other !== undefined && isShared(one) && isShared(other)) {
        sharing.add(place);
        // A call that was cut off or lost has no result, and is not counted as a step.
        if (hasResult(one)) steps++;
        costUsd += one.step.costUsd ?? 0;
      } else if (one !== undefined && other !== undefined) {
        const isSame = one.answer === other.answer && one.step.name === other.step.name && one.answer !== "";
        rows.push({ kind: isSame ? "same" : "differs", agentId, a: one, b: other });
      } else if (one !== undefined) rows.push({ kind: "only-a", agentId, a: one });
      else if (other !== undefined) rows.push({ kind: "only-b", agentId, b: other });
    }
  }
  if (steps === 0 || shared === null) return rows;
  return [
    { kind: "shared", agents: sharing.size, agentId: a.view.agentId, steps, costUsd, ...shared },
    ...rows,
  ];
}

function hasResult({ step: { outcome } }: ComparedStep): boolean {
  return outcome === "ok" || outcome === "error" || outcome === "denied";
}

/** The first step that differs, with its number among all steps of the comparison. `null` if there is none. */
export function firstDifference(
  rows: readonly ComparedRow[],
): { readonly row: ComparedRow; readonly step: number; readonly agentId: string } | null {
  let step = 0;
  for (const row of rows) {
    step += row.kind === "shared" ? row.steps : 1;
    if (row.kind !== "shared" && row.kind !== "same") return { row, step, agentId: row.agentId };
  }
  return null;
}

/** What two runs share. `null` if neither is a fork of the other, nor both of the same run. */
function sharedPart(a: RunView, b: RunView): Pick<SharedRow, "at" | "free"> | null {
  if (b.forkedFrom?.runId === a.runId) return { at: b.forkedFrom.at, free: ["b"] };
  if (a.forkedFrom?.runId === b.runId) return { at: a.forkedFrom.at, free: ["a"] };
  if (a.forkedFrom !== null && a.forkedFrom.runId === b.forkedFrom?.runId)
    return { at: Math.min(a.forkedFrom.at, b.forkedFrom.at), free: ["a", "b"] };
  return null;
}

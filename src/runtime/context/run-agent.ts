import {
  CancellationError,
  Fault,
  sealJson,
  type EventDraft,
  type JsonValue,
  type StepAddress,
  type TaskOutcome,
} from "../../kernel/index.ts";
import { ContinueAsNew, TaskContext } from "./task-context.ts";
import { cancelledOutcome, isFinalFault, outputAt } from "../journal/task-end.ts";
import { TaskInboxView } from "./task-inbox.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { joinWait } from "../journal/wait-names.ts";

/** Outcome of a task's code. E4: `events` were emitted after its last step and commit together with its end. */
export type CodeOutcome = { readonly events: readonly EventDraft[] } & (
  | {
      readonly kind: "ended";
      readonly outcome: TaskOutcome;
      /** The records whose fault it did not survive (J5). */
      readonly endedOn: readonly StepAddress[];
    }
  /** Nothing recorded says why: it may do better when started again. */
  | { readonly kind: "crashed"; readonly fault: Fault }
  /** J8. */
  | { readonly kind: "continues"; readonly input: JsonValue }
);

/** Runs the code of a task that may begin to its end. Never settles when the runner is dropped. */
export async function runAgentCode(runner: TaskRunner): Promise<CodeOutcome> {
  const { agent, cancelScope, state, host, taskId } = runner;
  const ctx = new TaskContext(runner, runner.task.journal);
  try {
    const ending = await runner.run(() => agent.run(ctx, inboxOf(runner, ctx)));
    if ("error" in ending) throw ending.error;
    const output = ending.value ?? null;
    sealJson(output, `what ${agent.id} returned`);
    const children = state.liveChildren(taskId, "wait");
    if (children.length > 0) {
      const ended = Promise.all(children.map((each) => host.whenEnded(each)));
      await runner.activity.waitFor(cancelScope, ended, { name: joinWait(children) });
    }
    return { kind: "ended", outcome: outcomeOf(runner, output), endedOn: none, events: ctx.takeEvents() };
  } catch (error) {
    return outcomeOfError(runner, error, ctx.takeEvents());
  }
}

const none: readonly never[] = [];

function inboxOf(runner: TaskRunner, ctx: TaskContext): TaskInboxView {
  const { journal, record } = runner.task;
  return new TaskInboxView(ctx, runner, journal === 0 ? record.messages : none);
}

function outcomeOf(runner: TaskRunner, output: JsonValue): TaskOutcome {
  const { stop, report } = runner;
  if (stop !== undefined) return reported(runner, cancelledOutcome(stop, output));
  const completed = { status: "completed", output, failure: null } as const;
  const { interruption } = report;
  return reported(runner, interruption === undefined ? completed : { ...completed, interruption });
}

function outcomeOfError(runner: TaskRunner, error: unknown, events: readonly EventDraft[]): CodeOutcome {
  if (error instanceof ContinueAsNew) return { kind: "continues", input: error.state, events };
  const fault = Fault.from(error);
  const stop = fault instanceof CancellationError ? fault : runner.stop;
  if (stop !== undefined) {
    const outcome = reported(runner, cancelledOutcome(stop, runner.output));
    return { kind: "ended", outcome, endedOn: [], events };
  }
  const endedOn = runner.journal.originsOf(error);
  if (endedOn.length === 0 && !isFinalFault(fault) && !isProgrammingError(error))
    return { kind: "crashed", fault, events };
  const outcome = reported(runner, failedOutcome(fault, outputAt(fault, runner.output)));
  return { kind: "ended", outcome, endedOn, events };
}

/** With what else the task wants known, however it ended. */
function reported({ report: { metadata } }: TaskRunner, outcome: TaskOutcome): TaskOutcome {
  return metadata === undefined ? outcome : { ...outcome, metadata };
}

export function failedOutcome(fault: Fault, output: JsonValue = null): TaskOutcome {
  return { status: "failed", output, failure: fault.toJSON() };
}

/**
 * What the language throws at code that is wrong: started again on the same records, it would come to the same. One with a cause tells of
 * something else, such as a `fetch` that failed; a `SyntaxError` of what was parsed, such as an error page in place of JSON; a `RangeError`
 * of memory that was short. Those may pass.
 */
function isProgrammingError(error: unknown): boolean {
  const thrown = Fault.is(error) && error.code === "internal" ? error.cause : error;
  return mistakes.some((Mistake) => thrown instanceof Mistake && thrown.cause === undefined);
}

const mistakes = [TypeError, ReferenceError] as const;

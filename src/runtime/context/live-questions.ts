import {
  JsonDigest,
  sealedOutcome,
  stepAt,
  type ApprovalDecision,
  type JsonValue,
  type StepAddress,
} from "../../kernel/index.ts";
import {
  approvalAddress,
  approvalWait,
  liveAddress,
  parkedAddress,
  questionAddress,
  withdrawn,
} from "../journal/wait-names.ts";
import type { CancellationScope } from "../task/cancellation-scope.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { approvalStep, askedAbout } from "../tool/approval.ts";

/** The record of a question that an attempt has asked. */
interface AskedQuestion {
  readonly approvalId: string;
  readonly input: JsonValue;
  /**
   * Address below which the answer is recorded. Absent for a question of `approval`, whose answer is the first step
   * of its call.
   */
  readonly round?: StepAddress;
  /** Present if an earlier attempt has asked the same question, so that this attempt emits no second request. */
  readonly isAskedBefore?: true;
}

/** A question of an attempt that no person has answered. */
export interface OpenQuestion extends Required<Pick<AskedQuestion, "approvalId" | "input" | "round">> {
  /** Address of the attempt that asked the question last. */
  readonly attempt: StepAddress;
}

const questionName = "question";
const parkedName = "parked";

/** Records a question with its request, so that the next owner can withdraw it. */
export function recordQuestion({ journal }: TaskRunner, call: StepAddress, asked: AskedQuestion): void {
  journal.record(
    { address: questionAddress(call), kind: "value", name: questionName, digest: JsonDigest.ofNull },
    sealedOutcome(structuredClone(asked) as unknown as JsonValue),
    [],
  );
}

/** Returns the questions of the attempts of a step that no person has answered. */
export function openQuestions({ task }: TaskRunner, step: StepAddress): readonly OpenQuestion[] {
  const open = new Map<string, OpenQuestion>();
  for (const { address, name, kind, outcome } of task.steps.values()) {
    const attempt = attemptOf(step, address);
    if (attempt === undefined || kind !== "value" || name !== questionName || outcome.kind !== "ok") continue;
    const asked = outcome.value as unknown as AskedQuestion;
    const call = address.slice(0, address.lastIndexOf("/")) as StepAddress;
    const { approvalId, input, round = stepAt(call, 0) } = asked;
    const answer = approvalAddress(round);
    // A question that was refused as invalid was never asked.
    const wasAsked = asked.isAskedBefore === true || task.opened.has(answer);
    if (task.steps.has(answer) || !(wasAsked || open.has(approvalId))) open.delete(approvalId);
    else open.set(approvalId, { approvalId, input, round, attempt });
  }
  return [...open.values()];
}

/**
 * Withdraws questions that no person has answered. The log then contains a denial for each, so that no surface
 * shows them any more.
 */
export function withdrawQuestions(
  { journal }: TaskRunner,
  questions: readonly OpenQuestion[],
  reason: string,
): void {
  for (const { approvalId, input, round } of questions) {
    const decision: ApprovalDecision = { decision: "denied", reason, by: "runtime" };
    journal.record(approvalStep(round, { approvalId, input }), sealedOutcome(withdrawn), [
      { type: "approval_decision", data: { approvalId, decision } },
    ]);
  }
}

/** The record of an attempt that ended while its questions stay open. */
interface ParkedAttempt {
  /** The questions that stay open when the attempt ends. */
  readonly questions: readonly string[];
  /** Whether the program only waited for the answers to these questions. */
  readonly isIdle: boolean;
}

/**
 * Records that the open questions of an attempt remain open after its end, because the run is about to be released.
 */
export function recordParked(
  { journal, task }: TaskRunner,
  attempt: StepAddress,
  questions: readonly OpenQuestion[],
  isIdle: boolean,
): void {
  const count = parkedIn(task.steps, attempt);
  const parked: ParkedAttempt = { questions: questions.map(({ approvalId }) => approvalId), isIdle };
  const last = task.steps.get(parkedAddress(attempt, count))?.outcome;
  if (last?.kind === "ok" && JSON.stringify(last.value) === JSON.stringify(parked)) return;
  journal.record(
    {
      address: parkedAddress(attempt, count + 1),
      kind: "value",
      name: parkedName,
      digest: JsonDigest.ofNull,
    },
    sealedOutcome(parked as unknown as JsonValue),
    [],
  );
}

function parkedIn(steps: ReadonlyMap<StepAddress, unknown>, attempt: StepAddress): number {
  let count = 0;
  while (steps.has(parkedAddress(attempt, count + 1))) count++;
  return count;
}

/**
 * Returns what the last attempt of an earlier owner left open on purpose. `undefined` if it did not end in this
 * way.
 */
export function parkedAttempt({ task }: TaskRunner, attempt: StepAddress): ParkedAttempt | undefined {
  const outcome = task.steps.get(parkedAddress(attempt, parkedIn(task.steps, attempt)))?.outcome;
  return outcome?.kind === "ok" ? (outcome.value as unknown as ParkedAttempt) : undefined;
}

/**
 * Resolves when one of the questions is answered. The answer remains available for the step that asks the same
 * question again.
 */
export async function untilOneAnswered(
  { taskId, host, activity }: TaskRunner,
  cancelScope: CancellationScope,
  questions: readonly OpenQuestion[],
): Promise<void> {
  const names = questions.map(({ approvalId }) => approvalWait(approvalId));
  const [name, ...others] = names;
  if (name === undefined) return;
  const waits = names.map((each) => host.waits.wait(taskId, each));
  const first = Promise.race(waits.map(({ came }) => came));
  try {
    await activity.waitFor(cancelScope, first, { name, others });
  } finally {
    for (const wait of waits) wait.leave();
  }
}

/** The questions that the program of an attempt may ask again with their first id. */
export class KeptQuestions {
  readonly #kept: Map<string, OpenQuestion>;

  constructor(questions: readonly OpenQuestion[]) {
    this.#kept = new Map(questions.map((question) => [askedAbout(question.approvalId), question]));
  }

  /** Returns the id of the question about the same subject, and removes the question from the list. */
  take(subject: string): string | undefined {
    const question = this.#kept.get(subject);
    this.#kept.delete(subject);
    return question?.approvalId;
  }
}

/** Returns the attempt of the step to which an address belongs. `undefined` if it belongs to none of them. */
function attemptOf(step: StepAddress, address: StepAddress): StepAddress | undefined {
  const prefix = liveAddress(step, 0).slice(0, -1);
  if (!address.startsWith(prefix)) return undefined;
  const number = Number.parseInt(address.slice(prefix.length), 10);
  return Number.isNaN(number) ? undefined : liveAddress(step, number);
}

import type { RunView, TaskView } from "../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { runPath, sessionPath } from "../../base/route.ts";
import { capUsd, counted, grouped, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Line } from "../../parts/line.tsx";
import { BudgetMeter } from "../../parts/budget-meter.tsx";
import { endWord, hasEnded, lookOfTask } from "../../model/status.ts";
import { failureWords, shownCode } from "../../model/words/failure-words.ts";
import { budgetUseOf, rootId, spentOf, toneOf } from "../../model/money.ts";
import { openTopUp } from "../../parts/open-form.tsx";
import { areOrdersOff, resume, topUp } from "../../parts/orders.ts";
import { isWorkflow, type RunModel } from "../../model/run-model.ts";
import { topUpWords, useTopUp } from "../../model/top-up-left.ts";
import { amountWords, lackOf } from "../../../src/surfaces/view/top-up-offer.ts";

interface StopProps {
  readonly model: RunModel;
  readonly view: RunView;
  /** Whether the card leaves out the list of costs. */
  readonly isShort: boolean;
  readonly onOrder: (action: Promise<void>) => void;
}

/** Explains what happened, what was kept, and what can be done, for a run that ended without completing. */
export function StopCard({ model, view, isShort, onOrder }: StopProps): JSX.Element | null {
  const root = view.tasks.get(rootId);
  const right = useTopUp(view.runId, { status: view.status, budget: root?.budget });
  if (
    !hasEnded(view.status) ||
    view.status === "completed" ||
    view.status === "cancelled" ||
    root === undefined
  )
    return null;
  const use = budgetUseOf(root, null);
  const { lost } = root.total;
  const { lacks } = right;
  const word = endWord(view.status, view.failure);
  const isLimited = lackOf({ status: view.status, failure: view.failure, budget: root.budget }) !== null;
  const who = lacks === null ? "" : topUpWords(lacks.name, right);
  return (
    <section class={isShort ? "fault short" : "fault"} aria-label={word}>
      <header>
        <Glyph look="failed" status={view.status} />
        {word}
        <code>{view.failure === null ? view.status : shownCode(view.failure)}</code>
      </header>
      <div class="body">
        <div>
          <p class="lead">
            {view.failure === null ? `The run ended: ${word.toLowerCase()}.` : failureWords(view.failure)}
          </p>
          <p class="mid">
            {isWorkflow(model) ? workflowWords(view) : keptWords(root.total.calls - lost.calls)}
            {lost.calls > 0 &&
              ` ${counted(lost.calls, "call")} got no answer, charged at the highest possible cost: ${usd(lost.costUsd)}.`}
          </p>
          {who !== "" && <p class="mid">{who}</p>}
          <div class="actions">
            {lacks !== null && lacks.amount > 0 && (
              <>
                <button
                  class="button primary"
                  disabled={areOrdersOff(model)}
                  onClick={() => onOrder(topUp(model, { [lacks.name]: lacks.amount }, lacks.taskId))}
                >
                  Top up {amountWords(lacks.name, lacks.amount)} and continue
                </button>
                <button
                  class="button"
                  disabled={areOrdersOff(model)}
                  onClick={() => openTopUp(model, lacks.taskId)}
                >
                  Other amount
                </button>
              </>
            )}
            {isFinal(view.status) ? (
              <a class="button primary" href={sessionPath(view.sessionId)}>
                Continue in its session
              </a>
            ) : isLimited || view.isUndone ? null : (
              <button
                class="button primary"
                disabled={areOrdersOff(model)}
                onClick={() => onOrder(resume(model))}
              >
                Continue from the last step
              </button>
            )}
            {isShort && (
              <a class="button quiet" href={runPath(view.runId, "money")}>
                Where it went
              </a>
            )}
          </div>
        </div>
        {use.cap !== null && !isShort && (
          <div>
            <p class="row between">
              <b class="big">{usd(spentOf(use))}</b>
              <span class="dim">of {capUsd(use.cap)}</span>
            </p>
            <BudgetMeter values={use} size="large" />
            <dl class="lines">
              <Line kind="own" name={root.agentId} amount={use.own} />
              {root.children > 0 && (
                <Line kind="team" name={counted(root.children, "report")} amount={use.team} />
              )}
              {use.lost > 0 && <Line kind="lost" name="unreported calls" amount={use.lost} />}
            </dl>
          </div>
        )}
      </div>
      {root.children > 0 && !isShort && <WhereItWent view={view} />}
    </section>
  );
}

function workflowWords({ isUndone }: RunView): string {
  return isUndone
    ? "The run has undone its work, so it cannot continue. Start another one."
    : "Steps that are done are kept and not repeated.";
}

/** Whether nothing can be repeated after this end. A message in the session continues with the recorded data. */
function isFinal(status: RunView["status"]): boolean {
  return status === "max_turns" || status === "max_output" || status === "guardrail_tripped";
}

const mostReports = 5;

/**
 * Shows the costs of the root's reports, each with all agents below it. Failed ones come first, then the most
 * expensive.
 */
function WhereItWent({ view }: { readonly view: RunView }): JSX.Element {
  const reports = [...view.tasks]
    .filter(({ parentId }) => parentId === rootId)
    .toSorted((one, other) => needOf(other) - needOf(one) || spendOf(other) - spendOf(one));
  const rest = reports.slice(mostReports);
  return (
    <section class="went" aria-label="Where it went">
      <h2>Where it went</h2>
      <ol>
        {reports.slice(0, mostReports).map((task) => {
          const use = budgetUseOf(task, null);
          return (
            <li key={task.taskId}>
              <Glyph look={lookOfTask(task)} status={task.status} />
              <a class="cut" href={runPath(view.runId, "conversation", task.taskId)}>
                {task.agentId}
              </a>
              {use.cap === null ? <span /> : <BudgetMeter values={use} tone={toneOf(task)} />}
              <span>
                {usd(spentOf(use))}
                {use.cap !== null && <span class="dim"> of {capUsd(use.cap)}</span>}
              </span>
            </li>
          );
        })}
      </ol>
      {rest.length > 0 && (
        <a class="link" href={runPath(view.runId, "money")}>
          and {grouped(rest.length)} more, {usd(rest.reduce((sum, task) => sum + spendOf(task), 0))}
        </a>
      )}
    </section>
  );
}

function needOf(task: TaskView): number {
  return lookOfTask(task) === "failed" ? 1 : 0;
}

function spendOf({ total }: TaskView): number {
  return total.costUsd ?? 0;
}

/** What a run keeps for its continuation. */
function keptWords(answered: number): string {
  if (answered === 0) return "No call has an answer yet. The run starts again from its input.";
  const [verb, them] = answered === 1 ? ["is", "it"] : ["are", "them"];
  return `${counted(answered, "answered call")} ${verb} recorded. The run continues from there and does not pay for ${them} again.`;
}

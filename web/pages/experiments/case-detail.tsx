import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { ExperimentCase } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { columnUsd, counted, oneLine, plain, took } from "../../base/format.ts";
import { useKeys } from "../../base/keys.ts";
import { go, runPath, setQuery } from "../../base/route.ts";
import { lineDiff } from "../../model/line-diff.ts";
import { Diff } from "../../parts/diff.tsx";
import { shownName } from "../../parts/name.tsx";
import { scoreText } from "../../parts/run-scores.tsx";
import { readProperty, visibleText } from "../../../src/kernel/index.ts";

type Trial = ExperimentCase["trials"][number];

interface CaseDetailProps {
  readonly runId: string;
  readonly caseId: string;
  readonly variants: readonly string[];
  /** The run that is compared with. */
  readonly baseline: string | null;
}

/** One case: what was asked, the answers, how they differ, and why they were scored so. */
export function CaseDetail({ runId, caseId, variants, baseline }: CaseDetailProps): JSX.Element {
  const read = (from: string): Promise<ExperimentCase> =>
    get("/api/experiments/{runId}/cases", { params: { runId: from }, query: { caseId } });
  const { value, problem } = useRead(
    async () => ({ now: await read(runId), before: baseline === null ? null : await read(baseline) }),
    [runId, caseId, baseline],
  );
  const trials = variants.flatMap((variant) =>
    (value?.now.trials ?? [])
      .filter((trial) => trial.variant === variant)
      .toSorted((one, other) => one.trial - other.trial),
  );
  const expected = trials[0]?.expected;
  const [at, setAt] = useState<number | null>(null);
  const chosen = at === null ? null : (trials[at] ?? null);
  const last = trials.length - 1;
  const move = (step: number): void =>
    setAt((from) => Math.min(last, Math.max(0, from === null ? (step > 0 ? 0 : last) : from + step)));
  useKeys({
    "[": () => move(-1),
    "]": () => move(1),
    Enter: ({ target }) => {
      // A link or a button that has the focus keeps its own Enter.
      if (chosen === null || (target instanceof Element && target.matches("a, button, summary")))
        return false;
      go(trialPath(runId, chosen));
      return undefined;
    },
  });
  return (
    <section class="case-detail" aria-labelledby="case">
      <div class="row between">
        <h2 id="case" class="cut">
          {shownName(caseId)}
        </h2>
        <button class="button" onClick={() => setQuery("case", null)}>
          Close
        </button>
      </div>
      {problem !== null && <p class="problem">{problem}</p>}
      {value === null && problem === null && <p class="loading">Reading the trials</p>}
      {value !== null && (
        <>
          <p class="asked">
            <span class="dim">Asked</span>{" "}
            {value.now.input === null ? "The log does not have the input." : oneLine(value.now.input, 2_000)}
          </p>
          {expected !== undefined && (
            <p class="asked">
              <span class="dim">Expected</span> {oneLine(plain(expected), 2_000)}
            </p>
          )}
          {variants.map((variant) => (
            <VariantTrials
              key={variant}
              runId={runId}
              variant={variants.length > 1 ? variant : null}
              chosen={chosen}
              trials={trials.filter((trial) => trial.variant === variant)}
              other={otherAnswer(value.now.trials, value.before?.trials ?? null, variant, variants)}
            />
          ))}
        </>
      )}
    </section>
  );
}

interface OtherAnswer {
  readonly words: string;
  readonly text: string;
  readonly tools: Trial["tools"];
}

/** The answer that those of a variant are compared with: that of the other run, or of the first variant. */
function otherAnswer(
  now: readonly Trial[],
  before: readonly Trial[] | null,
  variant: string,
  variants: readonly string[],
): OtherAnswer | null {
  if (before !== null) {
    const former = before.find((trial) => trial.variant === variant) ?? before[0];
    return former === undefined ? null : { words: "the other run", ...answerOf(former) };
  }
  const [first] = variants;
  const trial = now.find((each) => each.variant === first);
  if (variant === first || first === undefined || trial === undefined) return null;
  return { words: first, ...answerOf(trial) };
}

function answerOf({ output, tools }: Trial): Pick<OtherAnswer, "text" | "tools"> {
  return { text: plain(output), tools };
}

/** The tools that a trial called, such as "look 2 times, write". */
function toolWords(tools: NonNullable<Trial["tools"]>): string {
  const words = tools.map(({ tool, calls }) => (calls === 1 ? tool : `${tool} ${counted(calls, "time")}`));
  return words.length === 0 ? "no tool" : shownName(words.join(", "));
}

/** The tools of a trial and of the other answer if they differ. `null` if they do not, or one of them is unknown. */
function differentTools({ tools }: Trial, other: OtherAnswer | null): string | null {
  if (tools === null || other === null || other.tools === null) return null;
  const [own, others] = [toolWords(tools), toolWords(other.tools)];
  return own === others ? null : `${own}; ${shownName(other.words)}: ${others}`;
}

/** The path of the run of a trial that is a fork, of the stored run itself, or of the conversation in the experiment. */
function trialPath(experimentRun: string, { runId, taskId, caseId }: Trial): string {
  if (runId !== undefined) return runPath(runId);
  return taskId === null ? runPath(caseId) : runPath(experimentRun, "conversation", taskId);
}

/** Whether something is behind the path of a trial. An agent without a seat has no task, and its case is no run. */
function hasPath({ runId, taskId, caseId }: Trial): boolean {
  return runId !== undefined || taskId !== null || caseId.startsWith("run_");
}

interface VariantTrialsProps {
  readonly runId: string;
  /** The trial that the keys have chosen. */
  readonly chosen: Trial | null;
  readonly variant: string | null;
  readonly trials: readonly Trial[];
  readonly other: OtherAnswer | null;
}

function VariantTrials({ runId, chosen, variant, trials, other }: VariantTrialsProps): JSX.Element {
  return (
    <div class="variant-trials">
      {variant !== null && <h3>{shownName(variant)}</h3>}
      {trials.length === 0 && <p class="dim">This variant has no result of the case yet.</p>}
      {trials.map((trial) => (
        <OneTrial
          key={trial.trial}
          runId={runId}
          trial={trial}
          isOnly={trials.length === 1}
          isChosen={trial === chosen}
          other={other}
        />
      ))}
    </div>
  );
}

function intoView(element: Element | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

/** The grades of a judge with several votes. `null` for other scorers. */
function votesOf(metadata: unknown): string | null {
  const grades: unknown = readProperty(metadata, "grades");
  return Array.isArray(grades) && grades.length > 1 ? grades.map(String).join(", ") : null;
}

interface OneTrialProps {
  readonly runId: string;
  readonly trial: Trial;
  readonly isOnly: boolean;
  readonly isChosen: boolean;
  readonly other: OtherAnswer | null;
}

function OneTrial({ runId, trial, isOnly, isChosen, other }: OneTrialProps): JSX.Element {
  const answer = plain(trial.output);
  const patch = other === null ? "" : lineDiff(other.text, answer);
  const tools = differentTools(trial, other);
  return (
    <article class="trial" aria-current={isChosen ? "true" : undefined} ref={isChosen ? intoView : null}>
      <p class="dim">
        {!isOnly && `Trial ${trial.trial}, `}
        {columnUsd(trial.costUsd)}, {counted(trial.turns, "turn")}, {took(trial.durationMs)}
        {hasPath(trial) && (
          <>
            {" "}
            <a class="link" href={trialPath(runId, trial)}>
              {trial.taskId === null ? "Run" : "Conversation"}
            </a>
          </>
        )}
      </p>
      {trial.error === null ? (
        <pre class="answer" role="region" aria-label="Answer" tabIndex={0}>
          {visibleText(answer)}
        </pre>
      ) : (
        <p class="bad">{visibleText(trial.error)}</p>
      )}
      {other !== null && (
        <details open={patch !== ""}>
          <summary>
            {patch === ""
              ? `The same answer as ${shownName(other.words)}`
              : `Against ${shownName(other.words)}`}
          </summary>
          {patch !== "" && <Diff patch={patch} />}
        </details>
      )}
      {tools !== null && (
        <p>
          <span class="dim">Other tools</span> {tools}
        </p>
      )}
      <dl class="trial-scores">
        {Object.entries(trial.scores).map(([scorer, { score, reason, error, metadata }]) => (
          <div key={scorer}>
            <dt>{shownName(scorer)}</dt>
            <dd>
              <b>{score === null ? (error === null ? "skipped" : "did not run") : scoreText(score)}</b>
              {votesOf(metadata) !== null && <span class="dim"> votes {votesOf(metadata)}</span>}
              {error !== null && <span class="bad"> {visibleText(error)}</span>}
              {reason !== null && <span> {visibleText(reason)}</span>}
            </dd>
          </div>
        ))}
      </dl>
    </article>
  );
}

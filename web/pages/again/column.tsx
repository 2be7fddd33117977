import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { visibleLine, type Event, type Failure, type TaskId } from "../../../src/kernel/index.ts";
import { startOfRun } from "../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../src/surfaces/view/run-view.ts";
import type { StepView } from "../../../src/surfaces/view/step-log.ts";
import { get } from "../../api/client.ts";
import type { AgentOptions } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { clock, grouped, plain, shortModel, took, usd } from "../../base/format.ts";
import { now } from "../../base/now.ts";
import { runPath } from "../../base/route.ts";
import { heldNow } from "../../model/held.ts";
import { lineDiff, partIn } from "../../model/line-diff.ts";
import { rootId } from "../../model/money.ts";
import { failureWords } from "../../model/words/failure-words.ts";
import { toolTitle } from "../../../src/surfaces/view/task-words.ts";
import { idleSince, workedMs } from "../../model/time/idle.ts";
import { RunModel } from "../../model/run-model.ts";
import { endWord, hasEnded, lookOf } from "../../model/status.ts";
import { useSteps } from "../../model/use-steps.ts";
import { CopyButton } from "../../parts/copy-button.tsx";
import { Diff } from "../../parts/diff.tsx";
import { Glyph } from "../../parts/glyph.tsx";
import { openSavePrompt } from "./save-prompt.tsx";
import { changesOf, doneFrom, markedLines, type Done, type Origin, type ShownChange } from "./variant.ts";

/** The data of a column that the other columns and the strip need. */
export interface ColumnFacts {
  readonly isOver: boolean;
  /** Whether it ended without an answer: it failed, stopped at a limit, or was cancelled. */
  readonly hasFailed: boolean;
  /** `null` if the price of a model is not known. */
  readonly costUsd: number | null;
  readonly heldUsd: number;
  /** The limit of the variant. `null`: none. */
  readonly limitUsd: number | null;
  readonly answer: string;
}

type OnFacts = (runId: string, facts: ColumnFacts) => void;

/** Most characters of an answer that a column draws. The run itself shows all of it. */
const mostAnswer = 20_000;
const mostTools = 40;

/** The first column: what was recorded from the turn on. */
export function Recorded({
  origin,
  model,
  steps,
  mostUsd,
  onFacts,
}: {
  readonly origin: Origin;
  readonly model: RunModel;
  readonly steps: readonly StepView[];
  readonly mostUsd: number;
  readonly onFacts: OnFacts;
}): JSX.Element {
  const view = model.live.value;
  const done = doneFrom(steps, origin.at);
  const answer = plain(view?.output ?? "");
  const startAt =
    steps.findLast(({ kind, callSeq }) => kind === "model" && callSeq === origin.at)?.startAt ?? 0;
  const facts: ColumnFacts = {
    isOver: view !== null && hasEnded(view.status),
    hasFailed: view !== null && hasEnded(view.status) && view.status !== "completed",
    costUsd: done.costUsd,
    heldUsd: 0,
    limitUsd: null,
    answer,
  };
  useEffect(() => onFacts(origin.runId, facts));
  return (
    <section class="variant" tabIndex={-1} aria-label="A, as recorded">
      <header>
        <h2>
          <span class="chip">A</span> As recorded
        </h2>
        <span class="chip">recorded</span>
        <p class="dim">
          {origin.model === null ? "model not recorded" : shortModel(visibleLine(origin.model))}
          {origin.instructions === null && ", instructions not recorded"}
        </p>
      </header>
      <Figures
        done={done}
        mostUsd={mostUsd}
        heldUsd={0}
        ms={timeOf(view, startAt)}
        isLive={!facts.isOver}
        isRecorded
      />
      <Tools done={done} edited={new Set()} isRecorded />
      <Answer text={answer} other={null} isLive={!facts.isOver} />
    </section>
  );
}

/**
 * Returns the time that the run worked since an event. The time in which a person answered is left out, because it
 * does not depend on the variant.
 */
function timeOf(view: RunView | null, from: number): number {
  return view === null || from === 0 ? 0 : workedMs(view, from, view.endedAt ?? view.at, idleSince(view));
}

/** A variant: a fork of the run, as it works. */
export function Column({
  runId,
  letter,
  origin,
  options,
  mostUsd,
  recordedAnswer,
  onFacts,
  onRemove,
}: {
  readonly runId: string;
  readonly letter: string;
  readonly origin: Origin;
  readonly options: AgentOptions | null;
  readonly mostUsd: number;
  /** The recorded answer, once it is there. */
  readonly recordedAnswer: string | null;
  readonly onFacts: OnFacts;
  readonly onRemove: () => void;
}): JSX.Element {
  const model = useMemo(() => new RunModel(runId), [runId]);
  useEffect(() => model.open(), [model]);
  void model.version.value;
  const view = model.live.value;
  const refusal = model.refusal.value;
  const tasks = [...(view?.tasks ?? [])].map(({ taskId }) => taskId);
  const stepsOf = useSteps(model, tasks.length > 200 ? [origin.taskId] : tasks);
  const { value: fork } = useRead(async () => {
    const { events } = await get("/api/runs/{runId}/events", {
      params: { runId },
      query: { types: ["run_fork"], limit: 100 },
    });
    return (events.at(-1) as Event<"run_fork"> | undefined) ?? null;
  }, [runId]);
  const done = doneFrom(
    tasks.flatMap((id) => stepsOf(id)),
    fork === null ? Number.MAX_SAFE_INTEGER : fork.seq,
  );
  const isOver = view !== null && hasEnded(view.status);
  const root = view?.tasks.get(rootId);
  const questions = [...(view?.tasks ?? [])].reduce((sum, task) => sum + task.questions, 0);
  const written = liveText(model, origin.taskId);
  const answer = isOver ? plain(view.output ?? "") : written;
  const facts: ColumnFacts = {
    isOver,
    hasFailed: isOver && view.status !== "completed",
    costUsd: root === undefined ? done.costUsd : root.total.costUsd,
    heldUsd: isOver ? 0 : heldNow(model.snapshot)(rootId),
    limitUsd: root?.budget?.maxCostUsd ?? null,
    answer,
  };
  useEffect(() => onFacts(runId, facts));
  const changes =
    fork === null
      ? []
      : changesOf(fork.data, {
          ...origin,
          instructions: origin.instructions ?? "",
        });
  const title = changes.map(({ what }) => (what === "Result" ? "A tool's result" : what)).join(" and ");
  const instructions = fork?.data.instructions;
  const edited = new Set((fork?.data.toolResults ?? []).map(({ callId }) => callId));
  return (
    <section class="variant" tabIndex={-1} aria-label={`${letter}, ${title || "variant"}`}>
      <header>
        <h2>
          <span class="chip live">{letter}</span>
          <a href={runPath(runId)}>{title === "" ? "Unchanged" : title}</a>
        </h2>
        {view !== null && (
          <span class="row state">
            <Glyph look={lookOf(view.status, questions)} status={view.status} />
            {questions > 0 ? (
              <a href={`/inbox?run=${runId}`}>waits for you</a>
            ) : (
              endWord(view.status, view.failure)
            )}
          </span>
        )}
        <button class="icon-button small" aria-label={`Remove column ${letter}`} onClick={onRemove}>
          ×
        </button>
        {refusal !== null && <p class="problem">{refusal.message}</p>}
        <Changes changes={changes} />
      </header>
      <Figures
        done={{
          ...done,
          costUsd: facts.costUsd,
          tokens: root?.total.tokens ?? done.tokens,
        }}
        mostUsd={mostUsd}
        heldUsd={facts.heldUsd}
        ms={view === null ? 0 : workedMs(view, startOfRun(view), view.endedAt ?? now.value, idleSince(view))}
        isLive={!isOver}
      />
      <Tools done={done} edited={edited} />
      <Answer
        text={answer}
        other={isOver ? recordedAnswer : null}
        isLive={!isOver}
        failure={view?.failure ?? null}
      />
      {instructions !== undefined && (
        <footer class="row">
          <SaveOrCopy origin={origin} options={options} instructions={instructions} letter={letter} />
        </footer>
      )}
    </section>
  );
}

/** What the model of a task writes now. */
function liveText(model: RunModel, taskId: TaskId): string {
  return (model.textOf(rootId) ?? model.textOf(taskId))?.text ?? "";
}

function Changes({ changes }: { readonly changes: readonly ShownChange[] }): JSX.Element {
  return (
    <>
      {changes.map(({ what, about, before, after }, at) => (
        <div key={at} class="shown-change">
          <p class="label">
            {what}
            {about === "" ? "" : ` of ${visibleLine(about)}`}
            {what === "Result" && <span class="chip wait">edited</span>}
          </p>
          <Diff patch={lineDiff(before, after)} />
        </div>
      ))}
    </>
  );
}

function Figures({
  done,
  mostUsd,
  heldUsd,
  ms,
  isLive,
  isRecorded = false,
}: {
  readonly done: Done;
  readonly mostUsd: number;
  readonly heldUsd: number;
  readonly ms: number;
  readonly isLive: boolean;
  readonly isRecorded?: boolean;
}): JSX.Element {
  const share = mostUsd === 0 ? 0 : Math.min(1, (done.costUsd ?? 0) / mostUsd);
  return (
    <div class="variant-figures">
      <div class={`share ${isRecorded ? "recorded" : ""}`} aria-hidden="true">
        <i style={{ width: `${share * 100}%` }} />
      </div>
      <dl>
        <div>
          <dt>Cost</dt>
          <dd>
            {usd(done.costUsd)}
            {heldUsd > 0 && <small class="dim"> +{usd(heldUsd)} held</small>}
          </dd>
        </div>
        <div>
          <dt>Time at work</dt>
          <dd>{isLive ? clock(ms) : took(ms)}</dd>
        </div>
        <div>
          <dt>Tokens</dt>
          <dd>{grouped(done.tokens)}</dd>
        </div>
      </dl>
    </div>
  );
}

function Tools({
  done,
  edited,
  isRecorded = false,
}: {
  readonly done: Done;
  readonly edited: ReadonlySet<string>;
  readonly isRecorded?: boolean;
}): JSX.Element {
  const { tools } = done;
  return (
    <div class="variant-tools">
      <p class="label">Tools</p>
      {tools.length === 0 && <p class="dim">{edited.size > 0 ? "The edited result, no new call" : "None"}</p>}
      <ul>
        {tools.slice(0, mostTools).map((step) => (
          <li key={`${step.startSeq} ${step.id}`}>
            <code class="cut">{visibleLine(toolTitle(step.name, null))}</code>
            <span class="cut grow dim" title={step.about}>
              {visibleLine(step.about.slice(0, 200))}
            </span>
            {step.outcome === "error" || step.outcome === "denied" ? (
              <span class="bad">{step.outcome === "denied" ? "denied" : "failed"}</span>
            ) : (
              !isRecorded && <span class="chip live">new</span>
            )}
          </li>
        ))}
      </ul>
      {tools.length > mostTools && <p class="dim">and {grouped(tools.length - mostTools)} more</p>}
    </div>
  );
}

function Answer({
  text,
  other,
  isLive,
  failure = null,
}: {
  readonly text: string;
  /** The answer with which this answer is compared. `null` if it does not exist yet. */
  readonly other: string | null;
  readonly isLive: boolean;
  readonly failure?: Failure | null;
}): JSX.Element {
  const shown = text.slice(0, mostAnswer);
  return (
    <div class="variant-answer">
      {failure !== null && <p class="problem">{failureWords(failure)}</p>}
      <p class="label">Answer</p>
      {text === "" ? (
        <p class="dim">{isLive ? "Not yet" : "None"}</p>
      ) : (
        <div class="answer-lines" aria-live="off">
          {markedLines(shown, other?.slice(0, mostAnswer) ?? null).map(({ text: line, isNew }, at) => (
            <p key={at} class={isNew ? "differs" : ""}>
              {visibleLine(line)}
            </p>
          ))}
          {text.length > mostAnswer && <p class="dim">The run shows the rest.</p>}
        </div>
      )}
    </div>
  );
}

/** Saves the changed prompt to the agent's file, or copies it if the caller or the folder does not allow it. */
function SaveOrCopy({
  origin,
  options,
  instructions,
  letter,
}: {
  readonly origin: Origin;
  readonly options: AgentOptions | null;
  readonly instructions: string;
  readonly letter: string;
}): JSX.Element {
  const file = options?.file ?? null;
  const recorded = origin.instructions ?? "";
  const around = partIn(recorded, file?.instructions ?? null);
  const isAround =
    around !== null &&
    instructions.startsWith(around.before) &&
    instructions.endsWith(around.after) &&
    instructions.length >= around.before.length + around.after.length;
  const own = isAround
    ? instructions.slice(around.before.length, instructions.length - around.after.length)
    : null;
  const reason =
    file === null
      ? "The agent has no Markdown file."
      : (file.refusal ?? (own === null ? "The file has another text than this run was sent." : null));
  return (
    <>
      {reason === null && own !== null && options !== null ? (
        <button class="button small" onClick={() => openSavePrompt(options.name, own)}>
          Save {letter}'s instructions to the agent
        </button>
      ) : (
        <span class="dim">{reason}</span>
      )}
      <CopyButton text={own ?? instructions} label={`Copy ${letter}'s instructions`} />
    </>
  );
}

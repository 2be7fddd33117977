import { visibleLine, type RecordedRequest, type TaskId } from "../../../../src/kernel/index.ts";
import { requestGaps, type ModelCallView } from "../../../../src/surfaces/view/model-calls.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView, TaskView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { get } from "../../../api/client.ts";
import { useRead } from "../../../api/use-read.ts";
import { clock, counted, grouped, took, usd } from "../../../base/format.ts";
import { useKeys } from "../../../base/keys.ts";
import { place, setQuery } from "../../../base/route.ts";
import { useCurrentInView } from "../../../base/use-current-in-view.ts";
import { rootId } from "../../../model/money.ts";
import { changesSince, rawRequest, type RequestChanges } from "../../../model/request-parts.ts";
import { sized } from "../../../model/request-shares.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { useTreeOrder } from "../../../model/use-tree-order.ts";
import { CopyButton } from "../../../parts/copy-button.tsx";
import { Icon } from "../../../parts/icon.tsx";
import { Name } from "../../../parts/name.tsx";
import { ContextBar, Instructions, RawRequest, SeenMessages, Tools } from "./request-view.tsx";

/** Number of model calls of an agent that are read at once. */
const mostCalls = 500;

/** Shows what the model of an agent read in each of its calls, as it was recorded. */
export function Saw({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const order = useTreeOrder(view ?? emptyView, rootId);
  if (view === null) return <></>;
  const wanted = place.value.query.get("task") as TaskId | null;
  const callers = order.filter((taskId) => hasCalls(view.tasks.get(taskId)) || taskId === wanted);
  const taskId = wanted !== null && view.tasks.get(wanted) !== undefined ? wanted : (callers[0] ?? rootId);
  const task = view.tasks.get(taskId);
  return task === undefined ? (
    <></>
  ) : (
    <Calls key={taskId} model={model} view={view} task={task} callers={callers} />
  );
}

const emptyView = { tasks: new Map<TaskId, TaskView>() } as unknown as RunView;

function hasCalls(task: TaskView | undefined): boolean {
  return task !== undefined && (task.own.calls > 0 || isInFlight(task));
}

/** Whether a model call of the task has started and has not ended. */
function isInFlight({ openCalls, lastCall }: TaskView): boolean {
  return openCalls > 0 && lastCall?.kind === "model";
}

interface CallsProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly task: TaskView;
  readonly callers: readonly TaskId[];
}

function Calls({ model, view, task, callers }: CallsProps): JSX.Element {
  const { runId } = model;
  const { taskId } = task;
  // A call that starts or ends changes what the agent has done.
  const { value, problem } = useRead(
    (signal) =>
      get("/api/runs/{runId}/requests", { params: { runId }, query: { taskId, limit: mostCalls }, signal }),
    [runId, taskId, task.own.calls, task.openCalls, task.status],
  );
  const inFlight = isInFlight(task) && model.playhead.value === null ? value?.calls.at(-1) : undefined;
  const until = model.playhead.value ?? Infinity;
  const calls = (value?.calls ?? []).filter(({ seq }) => seq <= until);
  const asked = Number(place.value.query.get("call") ?? Number.NaN);
  const found = calls.findIndex(({ seq }) => seq === asked);
  const at = found < 0 ? calls.length - 1 : found;
  const call = calls[at];
  const move = (by: number): boolean => {
    const next = calls[at + by];
    if (next !== undefined) setQuery("call", String(next.seq));
    return next !== undefined;
  };
  useKeys({ ArrowUp: () => move(-1), ArrowDown: () => move(1) });
  const strip = useCurrentInView(`${call?.seq}`);
  const widest = Math.max(1, ...calls.map(({ usage }) => usage?.inputTokens ?? 0));
  const isWhole = value?.next === null;
  return (
    <div class="conversation saw">
      <div class="agents-side">
        <nav class="agents saw-turns" ref={strip} aria-label="Model calls">
          <select
            class="select"
            aria-label="Agent"
            value={taskId}
            onChange={(event) => {
              setQuery("call", null);
              setQuery("task", event.currentTarget.value);
            }}
          >
            {callers.map((each) => (
              <option key={each} value={each}>
                {visibleLine(view.tasks.get(each)?.agentId ?? each)}
              </option>
            ))}
          </select>
          <div>
            {calls.map((each, index) => (
              <Turn
                key={each.seq}
                call={each}
                name={turnName(calls, index, isWhole)}
                widest={widest}
                isCurrent={each === call}
                isInFlight={each === inFlight}
              />
            ))}
            {value !== null && !isWhole && (
              <p class="label">The last {grouped(calls.length)} calls. reeve show --request lists all.</p>
            )}
          </div>
          <p class="label">Bar: size of the request. Line below: read from the cache.</p>
        </nav>
      </div>
      {call === undefined ? (
        <p class="thread dim">
          {problem ?? (value === null ? "Reading the calls" : `${task.agentId} has called no model so far.`)}
        </p>
      ) : (
        <Request
          key={call.seq}
          model={model}
          view={view}
          call={call}
          before={calls[at - 1]}
          name={turnName(calls, at, isWhole)}
          beforeName={at === 0 ? "" : turnName(calls, at - 1, isWhole)}
        />
      )}
    </div>
  );
}

/** Returns the name of a turn. It contains its number if the list contains all calls of the agent. */
function turnName(calls: readonly ModelCallView[], at: number, isWhole: boolean): string {
  const call = calls[at];
  if (call === undefined) return "";
  if (call.role !== "main") return visibleLine(call.role);
  if (!isWhole) return `Call at event ${grouped(call.seq)}`;
  return `Turn ${calls.slice(0, at + 1).filter(({ role }) => role === "main").length}`;
}

function Turn({
  call: { seq, usage, retries },
  name,
  widest,
  isCurrent,
  isInFlight: isOpen,
}: {
  readonly call: ModelCallView;
  readonly name: string;
  readonly widest: number;
  readonly isCurrent: boolean;
  readonly isInFlight: boolean;
}): JSX.Element {
  const url = new URL(location.href);
  url.searchParams.set("call", String(seq));
  const { inputTokens = 0, cacheReadTokens = 0 } = usage ?? {};
  return (
    <a href={url.pathname + url.search} aria-current={isCurrent ? "page" : undefined}>
      <span class="row between">
        <span class="cut">
          {name}
          {retries > 0 && <span class="label"> attempt {retries + 1}</span>}
        </span>
        <span class="label">
          {usage === null ? (isOpen ? "in flight" : "no answer") : grouped(inputTokens)}
        </span>
      </span>
      <span class="turn-bar" aria-hidden="true">
        <i style={{ width: `${(inputTokens / widest) * 100}%` }} />
        <i class="cached" style={{ width: `${(cacheReadTokens / widest) * 100}%` }} />
      </span>
    </a>
  );
}

interface RequestProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly call: ModelCallView;
  /** The previous call. `undefined` for the first call. */
  readonly before: ModelCallView | undefined;
  readonly name: string;
  readonly beforeName: string;
}

function Request({ model, view, call, before, name, beforeName }: RequestProps): JSX.Element {
  const { runId } = model;
  const read = (seq: number, signal: AbortSignal): Promise<RecordedRequest> =>
    get("/api/runs/{runId}/requests/{seq}", { params: { runId, seq: String(seq) }, signal });
  const { value: found, problem } = useRead(
    (signal) => read(call.seq, signal),
    [runId, call.seq, call.usage === null],
  );
  const { value: last } = useRead(
    async (signal) => (before === undefined ? null : read(before.seq, signal)),
    [runId, before?.seq],
  );
  const value = found === null ? null : sized(found, call.usage);
  const changes = value !== null && last !== null ? changesSince(last, value) : null;
  const show = place.value.query.get("show");
  const toggle = (wanted: "raw" | "new"): void => setQuery("show", show === wanted ? null : wanted);
  useKeys({
    r: () => toggle("raw"),
    c: () => (changes === null ? false : toggle("new")),
    y: () => {
      if (value !== null) void navigator.clipboard.writeText(rawRequest(value));
    },
    Escape: () => (isSheetOpen() ? toggleSheet() : false),
  });
  return (
    <>
      <div class="thread saw-body" tabIndex={0} role="region" aria-label={`What the model saw in ${name}`}>
        <section class="saw-card head" aria-label={name}>
          <div class="row wrap">
            <h2>{name}</h2>
            <span class="chip">model call</span>
            <span class="grow" />
            <button class="button small sheet-open" aria-expanded={isSheetOpen()} onClick={toggleSheet}>
              About
            </button>
            {changes !== null && (
              <button class="button small" aria-pressed={show === "new"} onClick={() => toggle("new")}>
                Compare with {beforeName.toLowerCase()}
              </button>
            )}
            <button class="button small" aria-pressed={show === "raw"} onClick={() => toggle("raw")}>
              Raw request
            </button>
          </div>
          {value === null ? (
            <p class={problem === null ? "loading" : "problem"}>{problem ?? "Reading the request"}</p>
          ) : (
            <ContextBar request={value} />
          )}
        </section>
        {value !== null && show === "raw" && <RawRequest request={value} />}
        {value !== null && show !== "raw" && (
          <>
            <Instructions request={value} />
            <Tools request={value} />
            <SeenMessages
              request={value}
              from={show === "new" && changes !== null ? changes.firstNew : null}
            />
          </>
        )}
      </div>
      <About
        model={model}
        view={view}
        call={call}
        request={value}
        changes={changes}
        name={name}
        beforeName={beforeName}
      />
    </>
  );
}

/** Whether the inspector is open as a sheet. This is used below 1,100 px, and the query of the address opens it. */
function isSheetOpen(): boolean {
  return place.value.query.get("about") !== null;
}

function toggleSheet(): void {
  setQuery("about", isSheetOpen() ? null : "request");
}

interface AboutProps extends Omit<RequestProps, "before"> {
  readonly request: RecordedRequest | null;
  readonly changes: RequestChanges | null;
}

function About({ model, view, call, request, changes, name, beforeName }: AboutProps): JSX.Element {
  const { seq, agentId, model: modelName, at, durationMs, usage } = call;
  const gaps = request === null ? [] : requestGaps(request);
  const settings = Object.entries(request?.settings ?? {});
  return (
    <aside class={`inspector ${isSheetOpen() ? "open" : ""}`} aria-label={`About ${name}`}>
      <div class="row">
        <h2 class="grow">{name}</h2>
        <button class="icon-button small sheet-close" aria-label="Close" onClick={toggleSheet}>
          <Icon name="close" />
        </button>
      </div>
      <p class="mid">
        <Name text={agentId} />
      </p>
      <dl class="pairs">
        <dt>Model</dt>
        <dd>{modelName === null ? "unknown" : visibleLine(modelName)}</dd>
        <dt>Sent</dt>
        <dd>
          {clock(runTime(view, at))}
          {durationMs !== null && `, took ${took(durationMs)}`}
        </dd>
        <dt>Answer</dt>
        <dd>{usage === null ? "none recorded" : counted(usage.outputTokens, "token")}</dd>
        {usage !== null && (
          <>
            <dt>Cost</dt>
            <dd>{usage.costUsd === null ? "unpriced" : usd(usage.costUsd)}</dd>
          </>
        )}
        {settings.map(([key, value]) => (
          <>
            <dt>{settingNames[key] ?? key}</dt>
            <dd class="cut" title={visibleLine(JSON.stringify(value))}>
              {visibleLine(typeof value === "string" ? value : JSON.stringify(value))}
            </dd>
          </>
        ))}
        <dt>Event</dt>
        <dd>
          <a class="link" href={`/runs/${model.runId}/events?event=${seq}`}>
            {grouped(seq)}
          </a>
        </dd>
        {request !== null && (
          <>
            <dt>Messages</dt>
            <dd>{request.isProven ? "proven by the recorded digest" : "not proven"}</dd>
          </>
        )}
      </dl>
      {changes !== null && (
        <section>
          <h3>Changed since {beforeName.toLowerCase()}</h3>
          {changes.lines.length === 0 && <p class="dim">Nothing.</p>}
          <ul class="saw-changes">
            {changes.lines.map(({ words, tokens }, index) => (
              <li key={index} class="row between">
                <span class="cut">{words}</span>
                {tokens !== null && <span class="dim">+{grouped(tokens)}</span>}
              </li>
            ))}
          </ul>
        </section>
      )}
      {gaps.length > 0 && (
        <section>
          <h3>Not the whole truth</h3>
          {gaps.map((gap) => (
            <p key={gap} class="not-shown">
              {gap}
            </p>
          ))}
        </section>
      )}
      <div class="actions">
        <a class="button small" href={`/again?run=${model.runId}&task=${call.taskId}&at=${seq}`}>
          <Icon name="fork" /> Try this turn again
        </a>
        {request !== null && <CopyButton text={rawRequest(request)} label="Copy the request" />}
      </div>
    </aside>
  );
}

const settingNames: Readonly<Record<string, string>> = {
  thinkingLevel: "Effort",
  maxOutputTokens: "Output limit",
  toolChoice: "Tool choice",
  responseFormat: "Format",
  temperature: "Temperature",
};

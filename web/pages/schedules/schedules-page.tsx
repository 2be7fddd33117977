import { visibleLine } from "../../../src/kernel/index.ts";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { errorText, get, post, remove } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import type { Run, Schedule } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { now } from "../../base/now.ts";
import { go, place, runPath, setQuery } from "../../base/route.ts";
import { openSchedule } from "./schedule-form.tsx";
import { ago, span } from "../../base/format.ts";
import { dialog, FormDialog } from "../../parts/dialog.tsx";
import { Glyph } from "../../parts/glyph.tsx";
import { Outcomes, useOutcomes } from "./outcomes.tsx";
import { askWords, badRuns, skipWords, stateOf } from "./schedule-state.ts";

/** Runs that start at set times. */
export function SchedulesPage(): JSX.Element {
  const { value, problem, again } = useRead(() => get("/api/schedules"), []);
  const [refusal, setRefusal] = useState<string | null>(null);
  const schedules = value?.schedules ?? [];
  const from = place.value.query.get("from");
  useEffect(() => {
    if (from === null) return;
    setQuery("from", null);
    openFromRun(from, again).catch((error: unknown) => setRefusal(errorText(error)));
  }, [from]);
  const order = async (action: Promise<unknown>): Promise<void> => {
    try {
      await action;
      setRefusal(null);
      again();
    } catch (error) {
      setRefusal(errorText(error));
      // A fire that was refused has changed the schedule too.
      again();
    }
  };
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Schedules</h1>
        <button class="button primary" onClick={() => openSchedule({ onSaved: again })}>
          New schedule
        </button>
      </div>
      {(refusal ?? problem) !== null && (
        <p class="problem" role="alert">
          {refusal ?? problem}
        </p>
      )}
      {value !== null && schedules.length === 0 && (
        <p class="mid">
          Nothing is scheduled. A schedule starts a run at the times of a cron expression, also from the
          terminal: <code>reeve schedule add</code>.
        </p>
      )}
      {schedules.length > 0 && (
        <table class="table schedules">
          <thead>
            <tr>
              <th class="c-status">Status</th>
              <th>Schedule</th>
              <th class="c-meter wide-only">Times</th>
              <th class="c-time right">Next</th>
              <th class="c-outcomes right">Last runs</th>
              <th class="c-orders" aria-label="Orders" />
            </tr>
          </thead>
          <tbody>
            {schedules.map((schedule) => (
              <Row
                key={schedule.id}
                schedule={schedule}
                onOrder={(action) => void order(action)}
                onSaved={again}
              />
            ))}
          </tbody>
        </table>
      )}
    </main>
  );
}

function Row({
  schedule,
  onOrder,
  onSaved,
}: {
  readonly schedule: Schedule;
  readonly onOrder: (action: Promise<unknown>) => void;
  readonly onSaved: () => void;
}): JSX.Element {
  const { name, agentId, nextAt, status, lastAt, lastRunId, tenantId, userId } = schedule;
  const skipped = skipWords(schedule);
  const values = {
    params: { name },
    query: { ...(tenantId !== null && { tenantId }), ...(userId !== null && { userId }) },
  };
  const outcomes = useOutcomes(schedule);
  const { look, word } = stateOf(schedule, outcomes.runs);
  return (
    <tr ref={outcomes.row}>
      <td class="c-status">
        <span class={`status ${look}`}>
          <Glyph look={look} />
          <span class="word">{word}</span>
        </span>
      </td>
      <td class="c-title">
        <span class="title cut">{name}</span>
        <span class="sub">
          <span class="agent cut">{visibleLine(agentId)}</span>
          <span class="cut">{askWords(schedule)}</span>
        </span>
        <code class="sub times-below">{timesText(schedule.times)}</code>
        <Failures runs={outcomes.runs} />
        {skipped !== null && (
          <span class="sub bad">
            <span class="cut" title={skipped}>
              {skipped}
            </span>
          </span>
        )}
      </td>
      <td class="c-meter wide-only cut">
        <code>{timesText(schedule.times)}</code>
      </td>
      <td class="c-time right" data-head="Next">
        {nextAt === null ? "–" : nextAt > now.value ? `in ${span(nextAt - now.value)}` : "now"}
      </td>
      <td class="c-outcomes right" data-head="Last runs">
        {lastRunId === null || lastAt === null ? (
          "–"
        ) : (
          <a class="link" href={runPath(lastRunId)}>
            {ago(lastAt, now.value)}
          </a>
        )}
        <Outcomes runs={outcomes.runs} />
      </td>
      <td class="c-orders">
        <button
          class="button small"
          disabled={isOffline.value}
          onClick={() => onOrder(runNow(schedule, values))}
        >
          Run now
        </button>
        <button
          class="button small"
          disabled={isOffline.value}
          onClick={() => openSchedule({ schedule, onSaved })}
        >
          Edit
        </button>
        {status === "active" && (
          <button
            class="button small"
            disabled={isOffline.value}
            onClick={() => onOrder(post("/api/schedules/{name}/pause", values))}
          >
            Pause
          </button>
        )}
        {status === "paused" && (
          <button
            class="button small"
            disabled={isOffline.value}
            onClick={() => onOrder(post("/api/schedules/{name}/resume", values))}
          >
            Resume
          </button>
        )}
        <button
          class="button small deny"
          disabled={isOffline.value}
          onClick={() => openRemove(schedule, values, onSaved)}
        >
          Remove
        </button>
      </td>
    </tr>
  );
}

/** Opens the form of a new schedule with the agent and the input of a run. */
async function openFromRun(runId: string, onSaved: () => void): Promise<void> {
  const query = { from: 0, limit: 1 };
  const { events } = await get("/api/runs/{runId}/events", { params: { runId }, query });
  const [start] = events;
  if (start?.type !== "run_start") throw new Error(`${runId} has no input that a schedule could repeat.`);
  openSchedule({ from: { agent: start.agentId, input: start.data.input }, onSaved });
}

interface ScheduleValues {
  readonly params: { readonly name: string };
  readonly query: { readonly tenantId?: string; readonly userId?: string };
}

/** Asks before a schedule is removed. */
function openRemove({ name }: Schedule, values: ScheduleValues, onRemoved: () => void): void {
  dialog.value = () => (
    <FormDialog
      title={`Remove ${visibleLine(name)}`}
      confirm="Remove"
      isDangerous
      onConfirm={async () => {
        await remove("/api/schedules/{name}", values);
        onRemoved();
      }}
    >
      <p>It starts no further run. The runs that it has started stay.</p>
    </FormDialog>
  );
}

/** Starts a run of a schedule, and opens it as soon as a process has started it. Says why a process refused it. */
async function runNow({ agentId, skipped }: Schedule, values: ScheduleValues): Promise<void> {
  const { runId } = await post("/api/schedules/{name}/run", values);
  for (let tries = 0; tries < mostTries; tries++) {
    const { lastRunId, skipped: later } = await get("/api/schedules/{name}", values);
    if (lastRunId === runId) return go(runPath(runId));
    if (later?.error !== undefined && later.at !== skipped?.at)
      throw new Error(`The run was refused: ${later.error}`);
    await new Promise((resolve) => setTimeout(resolve, retryMs));
  }
  throw new Error(
    `No process has started the run yet. It starts as soon as one that hosts ${agentId} is open.`,
  );
}

/** A process that hosts the agent starts the run within milliseconds. */
const [mostTries, retryMs] = [20, 150];

/** Says how many of the latest runs of a schedule did not complete, counted back to the last run that did. */
function Failures({ runs }: { readonly runs: readonly Run[] }): JSX.Element | null {
  const bad = badRuns(runs);
  if (bad === 0) return null;
  const ended = bad === 1 ? "The last run" : `The last ${bad} runs`;
  return <span class="sub bad">{ended} did not complete</span>;
}

function timesText(times: Schedule["times"]): string {
  if ("cron" in times) return `${times.cron} ${times.timeZone}`;
  if ("everyMs" in times) return `every ${span(times.everyMs)}`;
  return new Date(times.at).toLocaleString("en-GB");
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, get, post, remove } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import type { Run, Schedule } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { now } from "../../base/now.ts";
import { runPath } from "../../base/route.ts";
import { dialog, FormDialog } from "../../parts/dialog.tsx";
import { ago, span } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Outcomes, useOutcomes } from "./outcomes.tsx";
import { askWords, badRuns, skipWords, stateOf } from "./schedule-state.ts";

/** Runs that start at set times. */
export function SchedulesPage(): JSX.Element {
  const { value, problem, again } = useRead(() => get("/api/schedules"), []);
  const [refusal, setRefusal] = useState<string | null>(null);
  const schedules = value?.schedules ?? [];
  const order = async (action: Promise<unknown>): Promise<void> => {
    try {
      await action;
      setRefusal(null);
      again();
    } catch (error) {
      setRefusal(errorText(error));
    }
  };
  return (
    <main class="page" id="main">
      <div class="page-head">
        <h1>Schedules</h1>
        <button class="button primary" onClick={() => openNewSchedule(again)}>
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
              <th class="c-purse wide-only">Times</th>
              <th class="c-time right">Next</th>
              <th class="c-outcomes right wide-only">Last runs</th>
              <th class="c-orders" aria-label="Orders" />
            </tr>
          </thead>
          <tbody>
            {schedules.map((schedule) => (
              <Row key={schedule.id} schedule={schedule} onOrder={(action) => void order(action)} />
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
}: {
  readonly schedule: Schedule;
  readonly onOrder: (action: Promise<unknown>) => void;
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
          <span>{agentId}</span>
          <span class="cut">{askWords(schedule)}</span>
          <Failures runs={outcomes.runs} />
          {skipped !== null && <span class="bad cut">{skipped}</span>}
        </span>
      </td>
      <td class="wide-only cut">
        <code>{timesText(schedule.times)}</code>
      </td>
      <td class="c-time right">
        {nextAt === null ? "–" : nextAt > now.value ? `in ${span(nextAt - now.value)}` : "now"}
      </td>
      <td class="c-outcomes right wide-only">
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
          onClick={() => onOrder(remove("/api/schedules/{name}", values))}
        >
          Remove
        </button>
      </td>
    </tr>
  );
}

/** How many of the last runs ended without completing, in a row. */
function Failures({ runs }: { readonly runs: readonly Run[] }): JSX.Element | null {
  const bad = badRuns(runs);
  if (bad === 0) return null;
  const ended = bad === 1 ? "The last run" : `The last ${bad} runs`;
  return <span class="bad">{ended} did not complete</span>;
}

function timesText(times: Schedule["times"]): string {
  if ("cron" in times) return `${times.cron} ${times.timeZone}`;
  if ("everyMs" in times) return `every ${span(times.everyMs)}`;
  return new Date(times.at).toLocaleString("en-GB");
}

function openNewSchedule(onCreated: () => void): void {
  dialog.value = () => <NewSchedule onCreated={onCreated} />;
}

function NewSchedule({ onCreated }: { readonly onCreated: () => void }): JSX.Element {
  const { value } = useRead(() => get("/api/agents"), []);
  const [name, setName] = useState("");
  const [chosen, choose] = useState("");
  const [input, setInput] = useState("");
  const [cron, setCron] = useState("0 9 * * 1-5");
  const agent = chosen === "" ? (value?.agents[0]?.name ?? "") : chosen;
  const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return (
    <FormDialog
      title="New schedule"
      confirm="Create"
      onConfirm={async () => {
        if (name.trim() === "" || input.trim() === "") throw new Error("Enter a name and a task.");
        await post("/api/schedules", { body: { name, agent, input, cron, timeZone } });
        onCreated();
      }}
    >
      <label class="field">
        Name
        <input autoFocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
      </label>
      <label class="field">
        Agent
        <select value={agent} onChange={(event) => choose(event.currentTarget.value)}>
          {(value?.agents ?? []).map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </label>
      <label class="field">
        Task
        <textarea rows={3} value={input} onInput={(event) => setInput(event.currentTarget.value)} />
      </label>
      <label class="field">
        Times as a cron expression, in {timeZone}
        <input value={cron} onInput={(event) => setCron(event.currentTarget.value)} />
      </label>
    </FormDialog>
  );
}

import type { JsonValue } from "../../../src/kernel/index.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, patch, post } from "../../api/client.ts";
import type { Schedule } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { useAgentInput } from "../../parts/agent-input.tsx";
import { dialog, FormDialog } from "../../parts/dialog.tsx";

interface ScheduleFormOptions {
  /** The schedule to change. If absent, the form creates one. */
  readonly schedule?: Schedule;
  /** The agent and the input of a new schedule, from an earlier run. */
  readonly from?: { readonly agent: string; readonly input: JsonValue };
  readonly onSaved: () => void;
}

/** Opens the form that creates or changes a schedule. */
export function openSchedule(options: ScheduleFormOptions): void {
  dialog.value = () => <ScheduleForm {...options} />;
}

type Kind = "cron" | "every" | "at";

const kinds: Readonly<Record<Kind, string>> = {
  cron: "Cron expression",
  every: "Interval in minutes",
  at: "Once, at",
};

/** The times of a schedule as the form shows them. */
function timesIn(schedule: Schedule | undefined): { readonly kind: Kind; readonly text: string } {
  if (schedule === undefined) return { kind: "cron", text: "0 9 * * 1-5" };
  const { times } = schedule;
  if ("cron" in times) return { kind: "cron", text: times.cron };
  if ("everyMs" in times) return { kind: "every", text: String(times.everyMs / 60_000) };
  return { kind: "at", text: localTime(times.at) };
}

/** A time as a field of the type `datetime-local` shows it. */
function localTime(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function ScheduleForm({ schedule, from, onSaved }: ScheduleFormOptions): JSX.Element {
  const { value, problem } = useRead(() => get("/api/agents"), []);
  const agents = (value?.agents ?? []).map((each) => each.name);
  const before = timesIn(schedule);
  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [name, setName] = useState("");
  const [chosen, choose] = useState(schedule?.agentId ?? from?.agent ?? "");
  const [kind, setKind] = useState<Kind>(before.kind);
  const [times, setTimes] = useState(before.text);
  const [zone, setZone] = useState(
    schedule !== undefined && "cron" in schedule.times ? schedule.times.timeZone : ownZone,
  );
  const agent = chosen === "" ? (agents[0] ?? "") : chosen;
  const input = useAgentInput({
    form: "schedule",
    agent: value?.agents.find((each) => each.name === agent),
    given: schedule?.input ?? from?.input ?? "",
    givenFor: schedule?.agentId ?? from?.agent,
    isRecorded: from !== undefined,
    mayAttach: false,
  });
  const isChanged =
    kind !== before.kind ||
    times !== before.text ||
    (kind === "cron" &&
      schedule !== undefined &&
      "cron" in schedule.times &&
      zone !== schedule.times.timeZone);
  const save = async (): Promise<void> => {
    const newInput = input.read();
    if (schedule === undefined) {
      if (name.trim() === "") throw new Error("Enter a name.");
      const body = { name, agent, input: newInput, ...timesOf(kind, times, zone) };
      await post("/api/schedules", { body });
    } else {
      const { tenantId, userId } = schedule;
      await patch("/api/schedules/{name}", {
        params: { name: schedule.name },
        query: { ...(tenantId !== null && { tenantId }), ...(userId !== null && { userId }) },
        body: {
          input: newInput,
          ...(agent !== schedule.agentId && { agent }),
          ...(isChanged && timesOf(kind, times, zone)),
        },
      });
    }
    onSaved();
  };
  return (
    <FormDialog
      title={schedule === undefined ? "New schedule" : `Edit ${schedule.name}`}
      confirm={schedule === undefined ? "Create" : "Save"}
      onConfirm={save}
    >
      {problem !== null && <p class="problem">{problem}</p>}
      {schedule === undefined && (
        <label class="field">
          Name
          <input autoFocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      )}
      <label class="field">
        Agent
        <select
          value={agent}
          onChange={(event) => {
            choose(event.currentTarget.value);
            input.reset();
          }}
        >
          {[...new Set([...(chosen === "" ? [] : [chosen]), ...agents])].map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </label>
      {input.fields}
      <div class="two">
        <label class="field">
          When
          <select
            value={kind}
            onChange={(event) => {
              const wanted = event.currentTarget.value as Kind;
              setKind(wanted);
              setTimes(wanted === before.kind ? before.text : examples[wanted]());
            }}
          >
            {Object.entries(kinds).map(([each, words]) => (
              <option key={each} value={each}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          {kinds[kind]}
          {kind === "at" ? (
            <input
              type="datetime-local"
              value={times}
              onInput={(event) => setTimes(event.currentTarget.value)}
            />
          ) : (
            <input value={times} onInput={(event) => setTimes(event.currentTarget.value)} />
          )}
        </label>
      </div>
      {kind !== "every" && (
        <label class="field">
          Time zone
          <input value={zone} onInput={(event) => setZone(event.currentTarget.value)} />
        </label>
      )}
    </FormDialog>
  );
}

const examples: Readonly<Record<Kind, () => string>> = {
  cron: () => "0 9 * * 1-5",
  every: () => "60",
  at: () => localTime(Date.now() + 3_600_000),
};

function timesOf(
  kind: Kind,
  text: string,
  timeZone: string,
): { readonly cron?: string; readonly everyMs?: number; readonly at?: string; readonly timeZone?: string } {
  if (kind === "cron") return { cron: text, timeZone };
  if (kind === "at") return { at: text, timeZone };
  const minutes = Number(text);
  if (!(minutes > 0)) throw new Error("The interval must be a number of minutes above 0.");
  return { everyMs: Math.round(minutes * 60_000) };
}

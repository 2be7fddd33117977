import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { visibleLine, type JsonObject } from "../../src/kernel/index.ts";
import { get, post } from "../api/client.ts";
import { useRead } from "../api/use-read.ts";
import { go, runPath } from "../base/route.ts";
import type { NewRunValues } from "../model/attached.ts";
import { budgetWords } from "../model/words/budget-words.ts";
import { useAgentInput } from "./agent-input.tsx";
import { InstructionsField, ModelField, ToolsField } from "./change-fields.tsx";
import { FormDialog } from "./dialog.tsx";

interface Changes {
  readonly instructions: string | null;
  readonly model: string;
  readonly tools: readonly string[] | null;
}

/** Characters of a description that a line of the list of agents has. */
const mostDescription = 120;

const unchanged: Changes = { instructions: null, model: "", tools: null };

/** Starts a run: the form contains the input, the limits, and changes of the agent for this run. */
export function NewRunForm({ agent, input: given = "" }: NewRunValues): JSX.Element {
  const { value, problem } = useRead(() => get("/api/agents"), []);
  const agents = value?.agents;
  const [chosen, choose] = useState(agent ?? "");
  const name = chosen === "" ? (agents?.[0]?.name ?? "") : chosen;
  const [budget, setBudget] = useState("");
  const [seats, setSeats] = useState("");
  const [changes, setChanges] = useState(unchanged);
  const agentOfRun = agents?.find((each) => each.name === name);
  const input = useAgentInput({
    form: "new-run",
    agent: agentOfRun,
    given,
    givenFor: agent,
    isRecorded: true,
    mayAttach: true,
  });
  const words = budgetWords(agentOfRun, Number(budget) > 0 ? Number(budget) : null);
  const start = async (): Promise<void> => {
    if (name === "") throw new Error("This server hosts no agent; start it with a model, or use reeve run.");
    const maxCostUsd = numberOf(budget, "budget");
    const maxAgents = numberOf(seats, "number of seats");
    const changed = changesOf(changes);
    const { run } = await post("/api/runs", {
      body: {
        agent: name,
        input: input.read(),
        ...(maxCostUsd !== null && { budget: { maxCostUsd } }),
        ...(maxAgents !== null && { spawnBudget: { maxAgents } }),
        ...(changed !== null && { changes: changed }),
      },
    });
    go(runPath(run.runId));
  };
  return (
    <FormDialog title="New run" confirm="Start" wide isOff={agents?.length === 0} onConfirm={start}>
      {problem !== null && <p class="problem">{problem}</p>}
      {agents?.length === 0 && (
        <p class="mid">
          This server hosts no agent. Start it with <code>reeve serve --model provider/id</code>.
        </p>
      )}
      <label class="field">
        Agent
        <select
          value={name}
          onChange={(event) => {
            choose(event.currentTarget.value);
            input.reset();
            setChanges(unchanged);
          }}
        >
          {(agents ?? []).map((each) => (
            <option key={each.name} value={each.name}>
              {visibleLine(each.name)}
              {each.description === null || each.description === ""
                ? ""
                : `: ${visibleLine(each.description.slice(0, mostDescription))}`}
            </option>
          ))}
        </select>
      </label>
      {input.fields}
      <div class="two">
        <div>
          <label class="field">
            Budget in dollars, optional
            <input
              inputMode="decimal"
              aria-describedby="budget-hint"
              value={budget}
              onInput={(event) => setBudget(event.currentTarget.value)}
            />
          </label>
          <p id="budget-hint" class={`hint ${words?.isLower === true ? "wait" : "dim"}`} role="status">
            {words?.text}
          </p>
        </div>
        <label class="field">
          Seats, optional
          <input inputMode="numeric" value={seats} onInput={(event) => setSeats(event.currentTarget.value)} />
        </label>
      </div>
      {name !== "" && <RunChanges key={name} agent={name} changes={changes} onChange={setChanges} />}
    </FormDialog>
  );
}

/** Fields for the changes of the agent for this run. Its data are read when a person opens them. */
function RunChanges({
  agent,
  changes,
  onChange,
}: {
  readonly agent: string;
  readonly changes: Changes;
  readonly onChange: (changes: Changes) => void;
}): JSX.Element {
  const [isOpen, open] = useState(false);
  return (
    <details class="changes" onToggle={(event) => open(event.currentTarget.open)}>
      <summary>Change something for this run</summary>
      {isOpen && <ChangeForm agent={agent} changes={changes} onChange={onChange} />}
    </details>
  );
}

function ChangeForm({
  agent,
  changes,
  onChange,
}: {
  readonly agent: string;
  readonly changes: Changes;
  readonly onChange: (changes: Changes) => void;
}): JSX.Element {
  const { value: options, problem } = useRead(
    () => get("/api/agents/{name}/options", { params: { name: agent } }),
    [agent],
  );
  if (options === null) return <p class="dim">{problem ?? "Reading what may be changed"}</p>;
  const { changes: may, instructions, tools } = options;
  return (
    <>
      <p class="dim">The changes apply to this run only. The budget and the rules of the agent stay.</p>
      <ModelField
        options={options}
        own={options.models[0] ?? null}
        value={changes.model}
        onInput={(model) => onChange({ ...changes, model })}
      />
      {may.instructions ? (
        <InstructionsField
          value={changes.instructions ?? instructions ?? ""}
          onInput={(text) => onChange({ ...changes, instructions: text === instructions ? null : text })}
          about={
            instructions === null
              ? "The agent builds its instructions by code. What you write takes their place."
              : "The agent's own instructions, to be changed for this run."
          }
        />
      ) : (
        <p class="dim">The instructions of this agent cannot be changed with your token.</p>
      )}
      {may.tools && tools.length > 0 && (
        <ToolsField
          tools={tools}
          kept={changes.tools ?? tools}
          onChange={(kept) => onChange({ ...changes, tools: kept.length === tools.length ? null : kept })}
        />
      )}
    </>
  );
}

/** Returns the changes in the form that the server accepts. `null` if nothing is changed. */
function changesOf({ instructions, model, tools }: Changes): JsonObject | null {
  const changes = {
    ...(instructions !== null && instructions.trim() !== "" && { instructions }),
    ...(model.trim() !== "" && { model: model.trim() }),
    ...(tools !== null && { tools: [...tools] }),
  };
  return Object.keys(changes).length === 0 ? null : changes;
}

function numberOf(text: string, what: string): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (!(value > 0)) throw new Error(`The ${what} must be a number above 0.`);
  return value;
}

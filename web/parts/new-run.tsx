import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post } from "../api/client.ts";
import { useRead } from "../api/use-read.ts";
import { go, runPath } from "../base/route.ts";
import { dialog, FormDialog } from "./dialog.tsx";
import { allowanceWords } from "../model/words/allowance-words.ts";

/** Opens the dialog that starts a run. `agent` is chosen already. */
export function openNewRun(options: { readonly agent?: string } | MouseEvent = {}): void {
  const agent = "agent" in options ? options.agent : undefined;
  dialog.value = () => <NewRun {...(agent !== undefined && { agent })} />;
}

function NewRun({ agent }: { readonly agent?: string }): JSX.Element {
  const { value, problem } = useRead(() => get("/api/agents"), []);
  const agents = value?.agents;
  const [chosen, choose] = useState(agent ?? "");
  const name = chosen === "" ? (agents?.[0]?.name ?? "") : chosen;
  const [input, setInput] = useState("");
  const [allowance, setAllowance] = useState("");
  const [seats, setSeats] = useState("");
  const agentOfRun = agents?.find((each) => each.name === name);
  const words = allowanceWords(agentOfRun, Number(allowance) > 0 ? Number(allowance) : null);
  const start = async (): Promise<void> => {
    if (name === "") throw new Error("This server hosts no agent; start it with a model, or use reeve run.");
    if (input.trim() === "") throw new Error("Write what the agent should do.");
    const maxCostUsd = numberOf(allowance, "allowance");
    const maxAgents = numberOf(seats, "number of seats");
    const { run } = await post("/api/runs", {
      body: {
        agent: name,
        input,
        ...(maxCostUsd !== null && { budget: { maxCostUsd } }),
        ...(maxAgents !== null && { spawnBudget: { maxAgents } }),
      },
    });
    go(runPath(run.runId));
  };
  return (
    <FormDialog title="New run" confirm="Start" isOff={agents?.length === 0} onConfirm={start}>
      {problem !== null && <p class="problem">{problem}</p>}
      {agents?.length === 0 && (
        <p class="mid">
          This server hosts no agent. Start it with <code>reeve serve --model provider/id</code>.
        </p>
      )}
      <label class="field">
        Agent
        <select value={name} onChange={(event) => choose(event.currentTarget.value)}>
          {(agents ?? []).map((each) => (
            <option key={each.name} value={each.name}>
              {each.name}
              {each.description === null || each.description === "" ? "" : `: ${each.description}`}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        Task
        <textarea rows={4} autoFocus value={input} onInput={(event) => setInput(event.currentTarget.value)} />
      </label>
      <div class="two">
        <div>
          <label class="field">
            Allowance in dollars, optional
            <input
              inputMode="decimal"
              aria-describedby="allowance-hint"
              value={allowance}
              onInput={(event) => setAllowance(event.currentTarget.value)}
            />
          </label>
          <p id="allowance-hint" class={`hint ${words?.isLower === true ? "wait" : "dim"}`} role="status">
            {words?.text}
          </p>
        </div>
        <label class="field">
          Seats, optional
          <input inputMode="numeric" value={seats} onInput={(event) => setSeats(event.currentTarget.value)} />
        </label>
      </div>
    </FormDialog>
  );
}

function numberOf(text: string, what: string): number | null {
  if (text.trim() === "") return null;
  const value = Number(text);
  if (!(value > 0)) throw new Error(`The ${what} must be a number above 0.`);
  return value;
}

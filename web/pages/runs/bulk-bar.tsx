import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { errorText, post, type Result } from "../../api/client.ts";
import { connection } from "../../api/connection.ts";
import type { Run } from "../../api/types.ts";
import { counted, usd } from "../../base/format.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Icon } from "../../parts/icon.tsx";
import { serverFilter, type RunFilter } from "../../model/run-query.ts";

type Order = "resume" | "cancel" | "delete";
type Preview = Result<"POST", "/api/run-orders/preview">;
type Outcome = Result<"POST", "/api/run-orders">;

const names: Readonly<Record<Order, string>> = { resume: "Resume", cancel: "Cancel", delete: "Delete" };
const done: Readonly<Record<Order, string>> = { resume: "resumed", cancel: "cancelled", delete: "deleted" };
const will: Readonly<Record<Order, string>> = {
  resume: "continue where they stopped. Recorded steps are free.",
  cancel: "are cancelled with all their agents.",
  delete: "are deleted with their events and contents. This cannot be undone.",
};
/** If at least this number of runs is deleted, the person must type the number to confirm. */
const typedFrom = 21;

/** The chosen runs: some runs, or all that match the filter. */
export type Choice = ReadonlySet<string> | "all";

interface BulkBarProps {
  readonly chosen: Choice;
  readonly runs: readonly Run[];
  readonly filter: RunFilter;
  /** How many runs fit the filter, in words. `null` if the page alone looks for words. */
  readonly found: string | null;
  readonly onChoose: (chosen: Choice) => void;
  readonly onDone: (outcome: Outcome, order: Order) => void;
}

/** Orders for many runs. Each order first shows its effect on each run. */
export function BulkBar({ chosen, runs, filter, found, onChoose, onDone }: BulkBarProps): JSX.Element {
  const [order, setOrder] = useState<Order | null>(null);
  const [preview, setPreview] = useState<Preview | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const key = chosen === "all" ? "all" : [...chosen].join();
  useEffect(() => {
    if (outcome !== null) return;
    setOrder(null);
    setPreview(null);
    setProblem(null);
  }, [key]);
  const isOffline = connection.value.state === "offline";
  const count = chosen === "all" ? (found ?? "") : String(chosen.size);
  const ask = async (wanted: Order): Promise<void> => {
    setOrder(wanted);
    setPreview(null);
    setOutcome(null);
    setProblem(null);
    setTyped("");
    try {
      const which = chosen === "all" ? { filter: serverFilter(filter) } : { runIds: [...chosen] };
      setPreview(await post("/api/run-orders/preview", { body: { order: wanted, ...which } }));
    } catch (error) {
      setProblem(errorText(error));
    }
  };
  const carryOut = async (wanted: Order, runIds: readonly string[]): Promise<void> => {
    setBusy(true);
    try {
      const result = await post("/api/run-orders", { body: { order: wanted, runIds } });
      setOutcome(result);
      onDone(result, wanted);
    } catch (error) {
      setProblem(errorText(error));
    } finally {
      setBusy(false);
    }
  };
  const size = preview?.runIds.length ?? 0;
  const isTyped = order !== "delete" || size < typedFrom || typed.trim() === String(size);
  return (
    <div class="bulk" role="region" aria-label={`Orders for ${count} runs`}>
      {order !== null && (
        <div class="bulk-preview" aria-live="polite">
          <div class="row between">
            <b>{outcome === null ? `${names[order]} ${count} ${count === "1" ? "run" : "runs"}` : "Done"}</b>
            <span class="label">{preview !== null && outcome === null ? "counted just now" : ""}</span>
          </div>
          {problem !== null && (
            <p class="problem" role="alert">
              {problem}
            </p>
          )}
          {preview === null && problem === null && <p class="dim">Counting</p>}
          {outcome !== null ? (
            <>
              <Line count={outcome.count} words={`were ${done[order]}.`} look="completed" />
              {outcome.refused.map(({ reason, runIds }) => (
                <Line key={reason} count={runIds.length} words={reason} look="cancelled" />
              ))}
            </>
          ) : (
            preview !== null && (
              <>
                <Line count={size} words={will[order]} look="pending" />
                {preview.refused.map(({ reason, runIds }) => (
                  <Line key={reason} count={runIds.length} words={reason} look="cancelled" />
                ))}
              </>
            )
          )}
          {preview !== null && outcome === null && order === "delete" && size >= typedFrom && (
            <label class="row">
              Type {size} to delete them{" "}
              <input
                class="field"
                inputMode="numeric"
                aria-label={`Type ${size} to delete`}
                value={typed}
                onInput={(event) => setTyped(event.currentTarget.value)}
              />
            </label>
          )}
          <div class="row between">
            <span class="mid">
              {order === "resume" && preview !== null && outcome === null && size > 0
                ? preview.atMostUsd === null
                  ? "At least one of them has no limit of money"
                  : `At most ${usd(preview.atMostUsd)} more, the sum of what is left`
                : ""}
            </span>
            <span class="row">
              <button
                class="button"
                onClick={() => {
                  if (outcome !== null) onChoose(new Set());
                  setOutcome(null);
                  setOrder(null);
                }}
              >
                {outcome === null ? "Back" : "Close"}
              </button>
              {outcome === null && (
                <button
                  class={`button ${order === "resume" ? "primary" : "danger"}`}
                  disabled={preview === null || size === 0 || isBusy || isOffline || !isTyped}
                  onClick={() => void carryOut(order, preview?.runIds ?? [])}
                >
                  {names[order]} {counted(size, "run")}
                </button>
              )}
            </span>
          </div>
        </div>
      )}
      <div class="bulk-orders">
        <b>
          {count} {found !== null && chosen !== "all" ? `of ${found} ` : ""}selected
        </b>
        {chosen !== "all" && found !== null && found !== String(chosen.size) && (
          <button class="link" onClick={() => onChoose("all")}>
            Select all {found}
          </button>
        )}
        <span class="grow" />
        {(["resume", "cancel", "delete"] as const).map((each) => {
          const why = isOffline ? "The server does not answer" : whyOff(each, chosen, runs);
          return (
            <button
              key={each}
              class="button"
              aria-pressed={order === each}
              disabled={why !== null}
              title={why ?? ""}
              onClick={() => void ask(each)}
            >
              {names[each]}
            </button>
          );
        })}
        <button class="button" aria-label="Clear the selection" onClick={() => onChoose(new Set())}>
          <Icon name="close" />
        </button>
      </div>
    </div>
  );
}

/** Returns why an order cannot be applied to any of the chosen runs. `null` if it may be applied to one. */
function whyOff(order: Order, chosen: Choice, runs: readonly Run[]): string | null {
  if (chosen === "all") return null;
  const known = runs.filter(({ runId }) => chosen.has(runId));
  if (known.length < chosen.size) return null;
  switch (order) {
    case "cancel":
      return known.every(({ endedAt }) => endedAt !== null) ? "All of them have ended" : null;
    case "delete":
      return known.every(({ endedAt }) => endedAt === null) ? "None of them has ended" : null;
    case "resume":
      return known.every(
        ({ status, endedAt }) => status === "completed" || (endedAt === null && status !== "paused"),
      )
        ? "None of them is stopped"
        : null;
  }
}

interface LineProps {
  readonly count: number;
  readonly words: string;
  /** Look of a line. A future effect is shown hollow; only a completed one has a tick. */
  readonly look: "pending" | "completed" | "cancelled";
}

function Line({ count, words, look }: LineProps): JSX.Element {
  return (
    <p class={`bulk-line ${look === "cancelled" ? "dim" : ""}`}>
      <Glyph look={look} />
      <b>{count}</b>
      <span>{words}</span>
    </p>
  );
}

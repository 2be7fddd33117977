import { get } from "../../api/client.ts";
import { useRead } from "../../api/use-read.ts";
import type { JSX } from "preact";
import { visibleLine, type Event, type EventType, type TaskId } from "../../../src/kernel/index.ts";
import type { RunModel } from "../../model/run-model.ts";
import { inputText } from "../../model/words/input-text.ts";
import { areOrdersOff, withdrawInput } from "../../parts/orders.ts";

/** The events with which an input of a task enters its queue, or may leave it. */
const changing: ReadonlySet<EventType> = new Set<EventType>([
  "run_steer",
  "input_withdraw",
  "input_unread",
  "turn_start",
  "user_message",
  "run_recover",
]);

interface Props {
  readonly model: RunModel;
  readonly taskId: TaskId;
  readonly agentId: string;
  /** The events of the conversation of the task. */
  readonly events: readonly Event[];
  /** Receives what happened to an input, and its text if it was taken back. */
  readonly onAnswer: (words: string, text?: string) => void;
}

/** The inputs that an agent has not read, each with a button that takes it back. A task without input reads nothing from the server. */
export function QueuedInputs({ model, taskId, agentId, events, onAnswer }: Props): JSX.Element | null {
  const { runId } = model;
  // The list of events grows in place.
  void model.version.value;
  const seq = events.findLast(({ type }) => changing.has(type))?.seq;
  const hasInput = events.some(({ type, data }) => type === "run_steer" && data.inputId !== undefined);
  const { value, again } = useRead(
    async (signal) =>
      hasInput ? get("/api/runs/{runId}/queued-input", { params: { runId }, signal }) : null,
    [runId, hasInput, seq],
  );
  const queued = value?.inputs.filter((each) => each.taskId === taskId) ?? [];
  if (queued.length === 0) return null;
  const takeBack = async (inputId: string, text: string): Promise<void> => {
    onAnswer(...(await withdrawInput(model, inputId, agentId, text)));
    again();
  };
  return (
    <ul class="queued-inputs" aria-label={`Not read by ${agentId} yet`}>
      {queued.map(({ inputId, kind, input }) => (
        <li key={inputId} class="row between">
          <span class="cut" title={visibleLine(inputText(input))}>
            {visibleLine(inputText(input))}
          </span>
          <span class="label">{kind === "steer" ? "before its next turn" : "at its end"}</span>
          <button
            class="button small"
            disabled={areOrdersOff(model)}
            onClick={() => void takeBack(inputId, inputText(input))}
          >
            Take back
          </button>
        </li>
      ))}
    </ul>
  );
}

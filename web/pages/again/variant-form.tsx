import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { visibleLine, type JsonValue } from "../../../src/kernel/index.ts";
import { errorText, post, type Body } from "../../api/client.ts";
import type { AgentOptions } from "../../api/types.ts";
import { isOffline } from "../../api/connection.ts";
import { partIn } from "../../model/line-diff.ts";
import { rootId } from "../../model/money.ts";
import { enteredOf, fieldsOf, valueOf, type Entered } from "../../model/schema-fields.ts";
import { InstructionsField, ModelField, SchemaFields, ToolsField } from "../../parts/change-fields.tsx";
import { editedOutput, proposedLimit, type KnownResult, type Origin } from "./variant.ts";

type ForkBody = Body<"POST", "/api/runs/{runId}/fork">;

/** The changes that the person has made so far. `null` means no change. */
interface Draft {
  readonly message: string | null;
  readonly entered: Entered | null;
  readonly instructions: string | null;
  readonly model: string;
  readonly tools: readonly string[] | null;
  readonly result: { readonly callId: string; readonly text: string } | null;
  readonly limit: string | null;
}

const empty: Draft = {
  message: null,
  entered: null,
  instructions: null,
  model: "",
  tools: null,
  result: null,
  limit: null,
};

/** The form of a new variant. Only changed parts are sent; all other parts stay as they were recorded. */
export function VariantForm({
  letter,
  origin,
  options,
  recordedUsd,
  onStarted,
  onClose,
}: {
  readonly letter: string;
  readonly origin: Origin;
  readonly options: AgentOptions | null;
  /** The amount that the run has spent from the turn on. `null` if the price of a model is unknown. */
  readonly recordedUsd: number | null;
  readonly onStarted: (runId: string) => void;
  readonly onClose?: () => void;
}): JSX.Element {
  const [draft, setDraft] = useState(empty);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isTried, setTried] = useState(false);
  const isFirst = origin.turn === 1 && origin.taskId === rootId;
  const schema = isFirst ? (options?.inputSchema ?? null) : null;
  const fields = schema === null ? [] : fieldsOf(schema);
  const shown = draft.entered ?? enteredOf(fields, valueIn(origin.input));
  const { value, problems } = valueOf(fields, shown);
  // The agent's own instructions are a part of what was sent. Only they are edited, and what surrounds them stays.
  const around = partIn(origin.instructions ?? "", options?.instructions ?? null);
  const own = around === null ? origin.instructions : (options?.instructions ?? null);
  const limit = draft.limit ?? proposedLimit(recordedUsd);
  const may = options?.changes ?? { instructions: true, tools: true, toolResults: true };
  const start = async (): Promise<void> => {
    setProblem(null);
    setTried(true);
    setBusy(true);
    try {
      const input = schema === null ? draft.message : draft.entered === null ? null : value;
      if (schema !== null && draft.entered !== null && Object.keys(problems).length > 0)
        throw new Error("The input does not fit the agent: look at the marked fields.");
      const body = bodyOf({ ...draft, limit }, origin, { input, isFirst, around });
      const { run } = await post("/api/runs/{runId}/fork", { params: { runId: origin.runId }, body });
      onStarted(run.runId);
    } catch (error) {
      setProblem(errorText(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="variant variant-form"
      aria-label={`New variant ${letter}`}
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <header>
        <h2>
          <span class="chip live">{letter}</span> New variant
        </h2>
        {onClose !== undefined && (
          <button type="button" class="icon-button small" aria-label="Close the form" onClick={onClose}>
            ×
          </button>
        )}
      </header>
      <p class="dim">What you leave as it is stays as it was recorded.</p>
      {schema !== null ? (
        <SchemaFields
          form="variant"
          fields={fields}
          entered={shown}
          problems={isTried ? problems : {}}
          onInput={(entered) => setDraft({ ...draft, entered })}
        />
      ) : (
        <label class="field">
          {isFirst ? "Message" : "Message to add, optional"}
          <textarea
            rows={3}
            value={draft.message ?? (isFirst ? origin.message : "")}
            onInput={({ currentTarget: { value: text } }) =>
              setDraft({ ...draft, message: text === (isFirst ? origin.message : "") ? null : text })
            }
          />
        </label>
      )}
      <ModelField
        options={options}
        own={origin.model}
        value={draft.model}
        onInput={(model) => setDraft({ ...draft, model })}
      />
      {own === null ? (
        <p class="dim">The instructions of this call were erased or never recorded.</p>
      ) : may.instructions ? (
        <InstructionsField
          value={draft.instructions ?? own}
          onInput={(text) => setDraft({ ...draft, instructions: text === own ? null : text })}
          about={
            around === null
              ? "The whole system prompt of the call, as it was recorded."
              : "The agent's own instructions. The rest of the system prompt stays."
          }
        />
      ) : (
        <p class="dim">The instructions of this agent cannot be changed with your token.</p>
      )}
      {may.tools && origin.tools.length > 0 && (
        <ToolsField
          tools={origin.tools}
          kept={draft.tools ?? origin.tools}
          onChange={(kept) =>
            setDraft({ ...draft, tools: kept.length === origin.tools.length ? null : kept })
          }
        />
      )}
      {may.toolResults && origin.results.length > 0 && (
        <ResultField
          results={origin.results}
          edited={draft.result}
          onChange={(result) => setDraft({ ...draft, result })}
        />
      )}
      <label class="field">
        Limit of this variant in dollars
        <input
          inputMode="decimal"
          value={limit}
          onInput={(event) => setDraft({ ...draft, limit: event.currentTarget.value })}
        />
        {recordedUsd === null && (
          <span class="hint dim">A model of this run has no known price, and a limit would refuse it.</span>
        )}
      </label>
      {problem !== null && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="button primary" disabled={isBusy || isOffline.value}>
        Start variant {letter}
      </button>
    </form>
  );
}

/** The result of a tool call that the next model call sees, to be edited. */
function ResultField({
  results,
  edited,
  onChange,
}: {
  readonly results: readonly KnownResult[];
  readonly edited: Draft["result"];
  readonly onChange: (edited: Draft["result"]) => void;
}): JSX.Element {
  const chosen = results.find(({ callId }) => callId === edited?.callId);
  return (
    <>
      <label class="field">
        Tool result to edit
        <select
          value={edited?.callId ?? ""}
          onChange={({ currentTarget: { value } }) => {
            const result = results.find(({ callId }) => callId === value);
            onChange(result === undefined ? null : { callId: value, text: result.text });
          }}
        >
          <option value="">None</option>
          {results.map(({ callId, toolName }) => (
            <option key={callId} value={callId}>
              {visibleLine(toolName)}
            </option>
          ))}
        </select>
      </label>
      {chosen !== undefined && edited !== null && (
        <label class="field">
          Edited result
          <textarea
            class="prompt"
            rows={5}
            value={edited.text}
            onInput={(event) => onChange({ ...edited, text: event.currentTarget.value })}
          />
          <span class="hint dim">The tool does not run again. The run marks the result as edited.</span>
        </label>
      )}
    </>
  );
}

/** The object of an input with a schema, as a run stores it. */
function valueIn(input: JsonValue): JsonValue {
  return ((input ?? {}) as { readonly value?: JsonValue }).value ?? null;
}

function bodyOf(
  { instructions, model, tools, result, limit }: Draft & { readonly limit: string },
  { at, taskId, results }: Origin,
  {
    input,
    isFirst,
    around,
  }: {
    readonly input: JsonValue;
    readonly isFirst: boolean;
    readonly around: ReturnType<typeof partIn>;
  },
): ForkBody {
  const maxCostUsd = Number(limit);
  if (limit.trim() !== "" && !(maxCostUsd > 0)) throw new Error("The limit must be a number above 0.");
  const hasInput = typeof input === "string" ? input.trim() !== "" : input !== null;
  const whole =
    instructions === null || around === null ? instructions : around.before + instructions + around.after;
  const before = results.find(({ callId }) => callId === result?.callId);
  return {
    at,
    keepsCommit: true,
    ...(taskId !== rootId && { taskId }),
    ...(hasInput && { input, ...(isFirst && { replacesInput: true }) }),
    ...(whole !== null && { instructions: whole }),
    ...(model.trim() !== "" && { model: model.trim() }),
    ...(tools !== null && { tools: [...tools] }),
    ...(result !== null &&
      before !== undefined && {
        toolResults: [
          {
            callId: result.callId,
            output: editedOutput(before.text, result.text),
            ...(before.isError && { isError: true }),
          },
        ],
      }),
    ...(limit.trim() !== "" && { budget: { maxCostUsd } }),
  };
}

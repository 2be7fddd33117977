import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { visibleLine, type JsonValue } from "../../src/kernel/index.ts";
import { errorText } from "../api/client.ts";
import type { AgentInfo } from "../api/types.ts";
import { earlierInput, inputOf, readFiles, type Attached } from "../model/attached.ts";
import { enteredOf, fieldsOf, valueOf, type Entered } from "../model/schema-fields.ts";
import { requireFitting, SchemaFields } from "./change-fields.tsx";

interface AgentInputOptions {
  /** Begins the ids of the fields. */
  readonly form: string;
  /** The agent. `undefined` if the server does not host it. */
  readonly agent: AgentInfo | undefined;
  /** The initial input of the form, and the agent for which it was written. */
  readonly given: JsonValue;
  readonly givenFor: string | undefined;
  /** Whether the input was recorded by a run, and not written in the form before it was sent. */
  readonly isRecorded: boolean;
  readonly mayAttach: boolean;
}

interface AgentInput {
  readonly fields: JSX.Element;
  /** Returns the entered input in the form that the server accepts. Throws and marks the errors. */
  readonly read: () => JsonValue;
  /** Removes what was entered for the schema of another agent. */
  readonly reset: () => void;
}

/** How a person enters the input of an agent or a workflow: a field per property of its schema, or a text with files. */
export function useAgentInput(options: AgentInputOptions): AgentInput {
  const { form, agent, given, givenFor, isRecorded, mayAttach } = options;
  const earlier = earlierInput(given, { isRecorded, kind: agent?.kind ?? "agent" });
  const [typed, setTyped] = useState<string | null>(null);
  const [chosen, setAttached] = useState<readonly Attached[] | null>(null);
  const [fileProblem, setFileProblem] = useState<string | null>(null);
  const [entered, setEntered] = useState<Entered | null>(null);
  const [isTried, setTried] = useState(false);
  const schema = agent?.inputSchema ?? null;
  const fields = schema === null ? [] : fieldsOf(schema);
  const isOwn = agent === undefined || agent.name === givenFor;
  const shown = entered ?? enteredOf(fields, isOwn ? earlier.value : null);
  const { value: fitting, problems } = valueOf(fields, shown);
  const text = typed ?? earlier.text;
  const attached = chosen ?? earlier.attached;
  /** An agent that the server does not host may take JSON, as the given input is. */
  const isJson = schema === null && earlier.isJson && isOwn;
  const attach = async (files: FileList | null): Promise<void> => {
    try {
      setAttached([...attached, ...(await readFiles(files))]);
      setFileProblem(null);
    } catch (error) {
      setFileProblem(errorText(error));
    }
  };
  const read = (): JsonValue => {
    if (schema !== null) {
      setTried(true);
      requireFitting(form, problems, agent?.kind === "workflow" ? "workflow" : "agent");
      return fitting;
    }
    if (isJson) return jsonOf(text);
    if (text.trim() === "" && attached.length === 0) throw new Error("Write what the agent should do.");
    return inputOf(text, attached);
  };
  const element =
    schema === null ? (
      <>
        <label class="field">
          {isJson ? "Input, as JSON" : "Task"}
          <textarea
            rows={4}
            autoFocus
            value={text}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        {mayAttach && (
          <label class="field">
            Files, optional
            <input type="file" multiple onChange={(event) => void attach(event.currentTarget.files)} />
          </label>
        )}
        {attached.length > 0 && (
          <p class="row wrap">
            {attached.map(({ name: file }) => (
              <button
                key={file}
                type="button"
                class="chip live"
                aria-label={`Remove ${visibleLine(file)}`}
                onClick={() => setAttached(attached.filter((each) => each.name !== file))}
              >
                {visibleLine(file)} ×
              </button>
            ))}
          </p>
        )}
        {fileProblem !== null && <p class="problem">{fileProblem}</p>}
      </>
    ) : (
      <SchemaFields
        form={form}
        fields={fields}
        entered={shown}
        problems={isTried ? problems : {}}
        onInput={setEntered}
      />
    );
  const reset = (): void => {
    setEntered(null);
    setTried(false);
  };
  return { fields: element, read, reset };
}

function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    throw new Error('The input is not valid JSON, such as { "city": "Rome" }.');
  }
}

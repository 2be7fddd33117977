import { visibleLine, type JsonSchema, type JsonValue } from "../../../../src/kernel/index.ts";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { post } from "../../../api/client.ts";
import { enteredOf, formOf, type Entered } from "../../../model/schema-fields.ts";
import { requireFitting, SchemaFields } from "../../../parts/change-fields.tsx";
import { closeDialog, dialog, Dialog, FormDialog } from "../../../parts/dialog.tsx";
import { shownName } from "../../../parts/name.tsx";

export type MessageKind = "signal" | "update";

/** A signal or an update that a person sends. */
interface Message {
  readonly name: string;
  /** JSON Schema of the value. `null` if unknown. */
  readonly schema: JsonSchema | null;
}

/** Opens the form of a signal or an update. If `message` is absent, the person writes its name. */
export function openMessage(runId: string, kind: MessageKind, message?: Message): void {
  // One id per form, so that a repeated send of the same form has no further effect.
  const id = crypto.randomUUID();
  dialog.value = () => <MessageForm runId={runId} kind={kind} given={message ?? null} id={id} />;
}

interface MessageProps {
  readonly runId: string;
  readonly kind: MessageKind;
  readonly given: Message | null;
  readonly id: string;
}

function MessageForm({ runId, kind, given, id }: MessageProps): JSX.Element {
  const [name, setName] = useState(given?.name ?? "");
  const { field, read } = useValue(kind, given?.schema ?? null);
  const send = async (): Promise<void | (() => JSX.Element)> => {
    if (name.trim() === "") throw new Error(`Write the name of the ${kind}.`);
    const body = { name, value: read(), id };
    if (kind === "signal") await post("/api/runs/{runId}/signal", { params: { runId }, body });
    else {
      const answer = await post("/api/runs/{runId}/update", { params: { runId }, body });
      if (!("reply" in answer)) return () => <Unanswered name={name} />;
    }
  };
  return (
    <FormDialog title={`Send ${kind}`} confirm={`Send ${kind}`} onConfirm={send}>
      {given === null ? (
        <label class="field">
          Name
          <input autoFocus value={name} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
      ) : (
        <p class="cut">
          <b title={visibleLine(name)}>{shownName(name)}</b>
        </p>
      )}
      {field}
      <p class="mid">Sending this form twice counts once.</p>
    </FormDialog>
  );
}

/** Shows that an update is stored and has no reply yet. */
function Unanswered({ name }: { readonly name: string }): JSX.Element {
  return (
    <Dialog title="Update stored, no reply yet">
      <p role="status">
        The run has the update <b class="cut">{shownName(name)}</b> and has not replied within 30 seconds. It
        handles the update when its code asks for it; the steps of the run show when it has.
      </p>
      <div class="actions end">
        <button type="button" class="button primary" onClick={closeDialog}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

/** Opens the form that resolves a promise. */
export function openPromise(id: string): void {
  dialog.value = () => <PromiseForm id={id} />;
}

function PromiseForm({ id }: { readonly id: string }): JSX.Element {
  const { field, read } = useValue("promise", null);
  const resolve = async (): Promise<void> => {
    await post("/api/promises/{id}/resolve", { params: { id }, body: { value: read() } });
  };
  return (
    <FormDialog title="Resolve promise" confirm="Resolve" onConfirm={resolve}>
      {field}
      <p class="mid">The first value counts.</p>
    </FormDialog>
  );
}

interface ValueField {
  readonly field: JSX.Element;
  /** Returns the value. Throws if it is invalid. */
  readonly read: () => JsonValue;
}

/**
 * Returns the fields for a value: those of its schema, or one field for JSON. `kind` says what the schema belongs
 * to.
 */
function useValue(kind: MessageKind | "promise", schema: JsonSchema | null): ValueField {
  const [form] = useState(() => formOf(schema));
  const [entered, setEntered] = useState<Entered>(() => enteredOf(form?.fields ?? []));
  const [isTried, setTried] = useState(false);
  const [text, setText] = useState("null");
  if (form === null)
    return {
      field: (
        <label class="field">
          Value, as JSON
          <textarea rows={4} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      ),
      read: () => jsonOf(text),
    };
  const { value, problems } = form.read(entered);
  return {
    field: (
      <SchemaFields
        form={kind}
        fields={form.fields}
        entered={entered}
        problems={isTried ? problems : {}}
        onInput={setEntered}
      />
    ),
    read: () => {
      setTried(true);
      requireFitting(kind, problems, kind);
      return value;
    },
  };
}

function jsonOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch (error) {
    throw new Error(`The value is not JSON: ${(error as Error).message}. Write a text as "text".`, {
      cause: error,
    });
  }
}

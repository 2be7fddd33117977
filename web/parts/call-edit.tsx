import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { QuestionView } from "../../src/surfaces/view/run-view.ts";
import { fieldDraft, jsonDraft, readDraft, type CallDraft } from "../model/edited-call.ts";
import { focusOnField, SchemaFields } from "./change-fields.tsx";

interface CallEditProps {
  readonly request: Pick<
    QuestionView["request"],
    "approvalId" | "toolName" | "input" | "parsedInput" | "inputSchema"
  >;
  readonly draft: CallDraft;
  readonly onDraft: (draft: CallDraft) => void;
}

/** Shows the arguments of a call as fields, or as JSON. Errors are shown while the person writes. */
export function CallEdit({ request, draft, onDraft }: CallEditProps): JSX.Element {
  const root = useRef<HTMLDivElement>(null);
  const { value, problems, problem, changes } = readDraft(request, draft);
  const isJson = draft.form === null;
  // The other way shows the same arguments. While something is wrong there are none to show.
  const other = value === undefined ? null : isJson ? fieldDraft(request, value) : jsonDraft(value);
  const hint = `${formOf(request)}-json-hint`;
  useLayoutEffect(() => {
    root.current?.querySelector<HTMLElement>("input, select, textarea")?.focus();
  }, [isJson]);
  return (
    <div class="call-edit" ref={root} role="group" aria-label="Arguments of the call">
      {(request.inputSchema !== undefined || !isJson) && (
        <p class="row">
          <span class="label">Arguments</span>
          <button
            type="button"
            class="link"
            disabled={other === null}
            title={other === null ? "Correct the arguments first." : undefined}
            onClick={() => other !== null && onDraft(other)}
          >
            {isJson ? "Edit as fields" : "Edit as JSON"}
          </button>
        </p>
      )}
      {isJson ? (
        <>
          <textarea
            class="command"
            aria-label="Arguments, as JSON"
            aria-invalid={problem !== null}
            aria-describedby={hint}
            spellcheck={false}
            rows={Math.min(12, Math.max(3, draft.json.split("\n").length))}
            value={draft.json}
            onInput={(event) => onDraft({ form: null, json: event.currentTarget.value })}
          />
          <p id={hint} class="hint bad" role="status">
            {problem}
          </p>
        </>
      ) : (
        <div class="call-fields">
          <SchemaFields
            form={formOf(request)}
            fields={draft.form.fields}
            entered={draft.entered}
            problems={problems}
            changed={changes}
            isCode
            onInput={(entered) => onDraft({ form: draft.form, entered })}
          />
        </div>
      )}
    </div>
  );
}

function formOf({ approvalId }: Pick<CallEditProps["request"], "approvalId">): string {
  return `call-${approvalId}`;
}

/** Moves the focus to the first argument that is wrong. */
export function focusOnWrong({ request, draft }: Omit<CallEditProps, "onDraft">): void {
  const [wrong] = Object.keys(readDraft(request, draft).problems);
  if (wrong !== undefined) focusOnField(formOf(request), wrong);
}

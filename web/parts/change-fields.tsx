// oxlint-disable-next-line import/no-unassigned-import -- the styles are loaded with the views that need them
import "../style/again.css";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { visibleLine } from "../../src/kernel/index.ts";
import type { AgentOptions } from "../api/types.ts";
import { counted } from "../base/format.ts";
import { ownOf, type Entered, type SchemaField } from "../model/schema-fields.ts";

interface TextProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
}

/** Field for the model of a run: one of a list, or any model if the caller may choose any. */
export function ModelField({
  label = "Model",
  options,
  own,
  value,
  onInput,
}: TextProps & {
  /** Default: `Model`. */
  readonly label?: string;
  readonly options: AgentOptions | null;
  readonly own: string | null;
}): JSX.Element {
  const models = options?.models ?? [];
  const unchanged = own === null ? "That of the agent" : `${visibleLine(own)}, as it is`;
  if (options !== null && !options.anyModel)
    return (
      <label class="field">
        {label}
        <select value={value} onChange={(event) => onInput(event.currentTarget.value)}>
          <option value="">{unchanged}</option>
          {models
            .filter((each) => each !== own)
            .map((each) => (
              <option key={each} value={each}>
                {visibleLine(each)}
              </option>
            ))}
        </select>
      </label>
    );
  return (
    <label class="field">
      {label}, as provider/id
      <input
        list="known-models"
        placeholder={unchanged}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <datalist id="known-models">
        {models.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
}

/** The instructions of an agent for one run. */
export function InstructionsField({
  value,
  onInput,
  about,
}: TextProps & { readonly about: string }): JSX.Element {
  return (
    <label class="field">
      Instructions
      <textarea
        class="prompt"
        rows={6}
        spellcheck={false}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
      <span class="hint dim">{about}</span>
    </label>
  );
}

/** The tools that a run keeps. */
export function ToolsField({
  tools,
  kept,
  onChange,
}: {
  readonly tools: readonly string[];
  readonly kept: readonly string[];
  readonly onChange: (kept: readonly string[]) => void;
}): JSX.Element {
  return (
    <fieldset class="tool-choice">
      <legend>
        Tools <span class="dim">{`${kept.length} of ${counted(tools.length, "tool")}`}</span>
      </legend>
      {tools.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={kept.includes(name)}
            onChange={({ currentTarget: { checked } }) =>
              onChange(tools.filter((each) => (each === name ? checked : kept.includes(each))))
            }
          />
          <code>{visibleLine(name)}</code>
        </label>
      ))}
    </fieldset>
  );
}

/**
 * Returns the id of a field. Spaces are replaced, because a list of ids is separated by spaces and a name may
 * contain some.
 */
function idOf(form: string, name: string): string {
  return `${form}-${visibleLine(name).replaceAll(" ", "_")}`;
}

export function focusOnField(form: string, name: string): void {
  document.querySelector<HTMLElement>(`#${CSS.escape(idOf(form, name))}`)?.focus();
}

/**
 * Throws if a field is invalid, and moves the focus to the first such field. `owner` says what the schema belongs
 * to.
 */
export function requireFitting(
  form: string,
  problems: Readonly<Record<string, string>>,
  owner: string,
): void {
  const [wrong] = Object.keys(problems);
  if (wrong === undefined) return;
  focusOnField(form, wrong);
  throw new Error(`The input does not fit the ${owner}: look at the marked fields.`);
}

interface OneLineProps
  extends
    TextProps,
    Pick<JSX.IntrinsicElements["input"], "id" | "aria-invalid" | "aria-describedby" | "inputMode"> {}

/** A text of one line. One that began with more keeps them: a field of one line would join them. */
function OneLine({ onInput, ...rest }: OneLineProps): JSX.Element {
  const isLong = useRef(false);
  isLong.current ||= rest.value.includes("\n");
  return isLong.current ? (
    <textarea rows={3} {...rest} onInput={(event) => onInput(event.currentTarget.value)} />
  ) : (
    <input {...rest} onInput={(event) => onInput(event.currentTarget.value)} />
  );
}

/** A field for each property of the input of an agent, of a message or of a call. A wrong one says what is expected. */
export function SchemaFields({
  fields,
  entered,
  problems,
  changed = [],
  isCode = false,
  onInput,
  form,
}: {
  readonly fields: readonly SchemaField[];
  readonly entered: Entered;
  /** What is wrong, by the name of the field. */
  readonly problems: Readonly<Record<string, string>>;
  /** Names of the fields that differ from what a model has asked. Default: none. */
  readonly changed?: readonly string[];
  /** Whether texts are code, which may have several lines. Default: `false`. */
  readonly isCode?: boolean;
  readonly onInput: (entered: Entered) => void;
  /** Begins the ids of the fields. A dialog opens above a page that has the same fields. */
  readonly form: string;
}): JSX.Element {
  return (
    <>
      {fields.map((field) => {
        const { name, label, hint, kind, choices, isRequired } = field;
        const id = idOf(form, name);
        const value = ownOf(entered, name) ?? "";
        const set = (text: string): void => onInput({ ...entered, [name]: text });
        const problem = ownOf(problems, name);
        const shared = {
          id,
          "aria-invalid": problem !== undefined,
          "aria-describedby": `${id}-hint`,
        };
        return (
          <div class="field" key={name}>
            <label for={id} class={kind === "flag" ? "tick-field" : undefined}>
              {kind === "flag" && (
                <input
                  {...shared}
                  type="checkbox"
                  checked={value === "true"}
                  onChange={(event) => set(event.currentTarget.checked ? "true" : "")}
                />
              )}
              <span>
                {isCode ? <code>{visibleLine(label)}</code> : visibleLine(label)}
                {!isRequired && <span class="dim"> optional</span>}
              </span>
              {changed.includes(name) && <span class="chip">changed</span>}
            </label>
            {kind === "flag" ? null : kind === "choice" ? (
              <select {...shared} value={value} onChange={(event) => set(event.currentTarget.value)}>
                <option value="">Choose</option>
                {choices.map((each) => (
                  <option key={each} value={each}>
                    {visibleLine(each)}
                  </option>
                ))}
              </select>
            ) : kind === "json" || (kind === "text" && isCode) ? (
              <textarea
                {...shared}
                class={isCode ? "prompt" : undefined}
                spellcheck={!isCode}
                rows={isCode ? Math.min(8, value.split("\n").length) : 3}
                value={value}
                onInput={(event) => set(event.currentTarget.value)}
              />
            ) : (
              <OneLine
                {...shared}
                inputMode={kind === "text" ? "text" : "decimal"}
                value={value}
                onInput={set}
              />
            )}
            <p id={`${id}-hint`} class={`hint ${problem === undefined ? "dim" : "bad"}`} role="status">
              {visibleLine(problem ?? hint)}
            </p>
          </div>
        );
      })}
    </>
  );
}

import { signal } from "@preact/signals";
import type { TaskId } from "../../src/kernel/index.ts";
import type { JSX } from "preact";
import type { NewRunValues } from "../model/attached.ts";
import { rootId } from "../model/money.ts";
import type { RunModel } from "../model/run-model.ts";
import type { ApprovalCard } from "./approval-card.tsx";
import { Dialog, dialog } from "./dialog.tsx";
import type { NewRunForm } from "./new-run-form.tsx";
import type { CancelForm, ForkForm, PriorityForm, TopUpForm } from "./order-forms.tsx";

interface Forms {
  readonly ApprovalCard: typeof ApprovalCard;
  readonly NewRunForm: typeof NewRunForm;
  readonly TopUpForm: typeof TopUpForm;
  readonly CancelForm: typeof CancelForm;
  readonly PriorityForm: typeof PriorityForm;
  readonly ForkForm: typeof ForkForm;
}

/** The forms, which the page loads after it has drawn its first view. */
export const forms = signal<Forms | "loading" | "failed">("loading");

/** Whether the forms are loaded, with which a thread grows. */
export function areFormsHere(): boolean {
  return typeof forms.value === "object";
}

/** Shown in place of a form until it is loaded. */
function Missing(): JSX.Element {
  const isLoading = forms.value === "loading";
  return (
    <p class="dim" aria-busy={isLoading}>
      {isLoading ? "Loading the form" : "The form could not be loaded. Load the page again."}
    </p>
  );
}

/** A question in a thread: the card of the inbox. */
export function QuestionCard(props: Parameters<typeof ApprovalCard>[0]): JSX.Element {
  const { value } = forms;
  return typeof value === "object" ? <value.ApprovalCard {...props} /> : <Missing />;
}

interface FormProps {
  /** Title of the dialog until its form is here. */
  readonly title: string;
  readonly draw: (loaded: Forms) => JSX.Element;
}

function openForm(title: string, draw: FormProps["draw"]): void {
  dialog.value = () => <LaterForm title={title} draw={draw} />;
}

function LaterForm({ title, draw }: FormProps): JSX.Element {
  const { value } = forms;
  if (typeof value === "object") return draw(value);
  return (
    <Dialog title={title}>
      <Missing />
    </Dialog>
  );
}

/** Opens the dialog that starts a run. */
export function openNewRun(values: NewRunValues | MouseEvent = {}): void {
  const props = values instanceof Event ? {} : values;
  openForm("New run", ({ NewRunForm: Form }) => <Form {...props} />);
}

/** Opens a dialog that asks how much to add to the limits of the run, or of one of its agents. */
export function openTopUp(model: RunModel, taskId: string = rootId): void {
  openForm("Top up", ({ TopUpForm: Form }) => <Form model={model} taskId={taskId} />);
}

/**
 * Opens a dialog that confirms the cancellation of a run, or of an agent with its reports. It names everything that
 * will stop.
 */
export function openCancel(model: RunModel, taskId: TaskId = rootId): void {
  openForm("Cancel", ({ CancelForm: Form }) => <Form model={model} taskId={taskId} />);
}

/** Asks for another priority of an agent. */
export function openPriority(model: RunModel, taskId: TaskId): void {
  openForm("Priority", ({ PriorityForm: Form }) => <Form model={model} taskId={taskId} />);
}

/** Asks how a fork begins. `at` is the event up to which it shares this run, or -1 for the newest one once it is read. */
export function openFork(model: RunModel, at: number): void {
  openForm("Fork this run", ({ ForkForm: Form }) => <Form model={model} at={at} />);
}

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { NewRunValues } from "../model/attached.ts";
import { Dialog, dialog } from "./dialog.tsx";
import type { NewRunForm } from "./new-run-form.tsx";

/** The form, which the page loads after it has drawn its first view. */
export const newRunForm = signal<{ readonly Form: typeof NewRunForm } | "loading" | "failed">("loading");

/** Opens the dialog that starts a run. */
export function openNewRun(values: NewRunValues | MouseEvent = {}): void {
  dialog.value = () => <NewRun {...(values instanceof Event ? {} : values)} />;
}

function NewRun(props: NewRunValues): JSX.Element {
  const { value } = newRunForm;
  if (typeof value === "object") return <value.Form {...props} />;
  return (
    <Dialog title="New run">
      <p class="dim" aria-busy={value === "loading"}>
        {value === "loading" ? "Loading the form" : "The form could not be loaded. Load the page again."}
      </p>
    </Dialog>
  );
}

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { Dialog, dialog } from "./dialog.tsx";
import type { NewRunForm } from "./new-run-form.tsx";

/** The form, which the page loads after it has drawn its first view. */
export const newRunForm = signal<{ readonly Form: typeof NewRunForm } | "loading" | "failed">("loading");

/** Opens the dialog that starts a run. `agent` is chosen already. */
export function openNewRun(options: { readonly agent?: string } | MouseEvent = {}): void {
  const agent = "agent" in options ? options.agent : undefined;
  dialog.value = () => <NewRun {...(agent !== undefined && { agent })} />;
}

function NewRun(props: { readonly agent?: string }): JSX.Element {
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

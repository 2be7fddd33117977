import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../api/client.ts";
import { isOffline } from "../api/connection.ts";

/** The dialog that is open. One at a time. */
export const dialog = signal<(() => JSX.Element) | null>(null);

export function closeDialog(): void {
  dialog.value = null;
}

export function DialogHost(): JSX.Element | null {
  const Open = dialog.value;
  return Open === null ? null : <Open />;
}

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

/** A modal dialog. Escape closes it, and the focus returns to its previous element. */
export function Dialog({ title, children, wide = false }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key press, which belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class={wide ? "wide" : ""} aria-label={title} onClose={closeDialog}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

interface FormProps {
  readonly title: string;
  readonly confirm: string;
  readonly isDangerous?: boolean;
  /** Whether the action is not possible. */
  readonly isOff?: boolean;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
  /**
   * Executes the action of the dialog. Returns the next dialog, if there is one. An error stays visible in the
   * dialog.
   */
  readonly onConfirm: () => Promise<void | (() => JSX.Element)>;
}

/** A dialog with one action. The action is possible only while the server answers. */
export function FormDialog({
  title,
  confirm,
  isDangerous = false,
  isOff = false,
  wide = false,
  children,
  onConfirm,
}: FormProps): JSX.Element {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (): Promise<void> => {
    setBusy(true);
    const own = dialog.value;
    try {
      const next = (await onConfirm()) ?? null;
      // The person may have closed this dialog and opened another one meanwhile.
      if (dialog.value === own) dialog.value = next;
    } catch (failure) {
      setError(errorText(failure));
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} wide={wide}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void send();
        }}
      >
        {children}
        {error !== null && (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
        <div class="actions end">
          <button type="button" class="button quiet" onClick={closeDialog}>
            Close
          </button>
          <button
            type="submit"
            class={`button ${isDangerous ? "danger" : "primary"}`}
            disabled={isBusy || isOff || isOffline.value}
          >
            {confirm}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

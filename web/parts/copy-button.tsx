import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";

interface CopyProps {
  readonly text: string;
  readonly label: string;
  /** Default: `copy`. */
  readonly icon?: IconName;
}

/** Copies a text. The label says that it is done. */
export function CopyButton({ text, label, icon = "copy" }: CopyProps): JSX.Element {
  const [state, setState] = useState<"" | "Copied" | "The browser did not allow it">("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState("Copied");
    } catch {
      setState("The browser did not allow it");
    }
  };
  return (
    <button
      class="icon-button small"
      aria-label={state === "" ? label : state}
      title={state === "" ? label : state}
      onClick={() => void copy()}
    >
      <Icon name={icon} />
      {state === "Copied" && <span class="label">Copied</span>}
    </button>
  );
}

import type { ComponentChildren, JSX } from "preact";
import type { Look } from "../model/status.ts";

const shapes: Readonly<Record<Look | "stopped" | "question" | "letter", ComponentChildren>> = {
  running: (
    <>
      <circle class="ring" cx="7" cy="7" r="6" />
      <circle class="dot" cx="7" cy="7" r="3.5" />
    </>
  ),
  waits: (
    <>
      <circle class="wait-fill" cx="7" cy="7" r="6" />
      <path class="cut" d="M7 3.6v4M7 9.6v.9" />
    </>
  ),
  suspended: (
    <>
      <circle class="ring" cx="7" cy="7" r="6" />
      <path class="line" d="M7 4v3.2l2 1.4" />
    </>
  ),
  paused: (
    <>
      <circle class="hold-line" cx="7" cy="7" r="6" />
      <path class="hold-line" d="M5.3 4.8v4.4M8.7 4.8v4.4" />
    </>
  ),
  pending: <circle class="edge-line dashed" cx="7" cy="7" r="5.5" />,
  completed: <path class="grey-line" d="M3 7.4 5.8 10 11 4.4" />,
  failed: (
    <>
      <circle class="bad-fill" cx="7" cy="7" r="6" />
      <path class="cut" d="m4.8 4.8 4.4 4.4M9.2 4.8 4.8 9.2" />
    </>
  ),
  stopped: (
    <>
      <path class="bad-fill" d="M4.5 1h5L13 4.5v5L9.5 13h-5L1 9.5v-5z" />
      <path class="cut" d="M4.2 7h5.6" />
    </>
  ),
  cancelled: (
    <>
      <circle class="grey-line" cx="7" cy="7" r="5.5" />
      <path class="grey-line" d="M3.4 10.6 10.6 3.4" />
    </>
  ),
  question: (
    <>
      <circle class="wait-fill" cx="7" cy="7" r="6" />
      <path class="cut" d="M5.2 5.6a1.8 1.8 0 1 1 2.6 1.6c-.5.3-.8.6-.8 1.2M7 9.8v1" />
    </>
  ),
  letter: (
    <>
      <rect class="bad-line" x="1.5" y="3" width="11" height="8" rx="1.5" />
      <path class="bad-line" d="m2 4 5 4 5-4" />
    </>
  ),
};

interface GlyphProps {
  readonly look: keyof typeof shapes;
  /** The status of the run or task. A run that was stopped by a limit has a different mark than a failed one. */
  readonly status?: string;
}

/** The mark of a status. The words stand beside it, so assistive technology skips it. */
export function Glyph({ look, status = "failed" }: GlyphProps): JSX.Element {
  return (
    <svg class={`glyph ${look}`} viewBox="0 0 14 14" aria-hidden="true">
      {shapes[look === "failed" && status !== "failed" ? "stopped" : look]}
    </svg>
  );
}

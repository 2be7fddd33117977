import type { JSX } from "preact";
import { Dialog } from "../parts/dialog.tsx";

const keys = [
  ["J K", "next, previous"],
  ["Enter", "open"],
  ["G R", "runs"],
  ["G I", "inbox"],
  ["G S", "sessions"],
  ["G C", "compare"],
  ["1 2 3 4 5 6 7", "views of a run"],
  ["Z", "zoom of the chart"],
  ["↑ ↓ ← →", "move in the chart"],
  ["Space", "play"],
  ["← →", "one event, with Shift one step"],
  ["L", "live"],
  ["U", "waits of the timeline in full"],
  ["C R Y", "what it saw: compare, raw, copy"],
  ["1 2 3 4", "columns of the variants"],
  ["F", "fork a run"],
  ["A E D S", "approve, edit, deny, skip"],
  ["[ ]", "trials of a case"],
  ["N", "new run"],
  ["X H U", "inbox: close, snooze, undo"],
  ["V", "views of the runs"],
  ["X", "choose a run, with Shift up to here"],
  ["/", "find, or filter runs"],
  ["T", "light or dark"],
  ["?", "this help"],
  ["Esc", "close or stop"],
] as const;

/** What the keys of the page do. */
export function Help(): JSX.Element {
  return (
    <Dialog title="Keys">
      <dl class="key-map">
        {keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((each) => (
                <kbd key={each}>{each}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="actions end">
        <button class="button">Close</button>
      </form>
    </Dialog>
  );
}

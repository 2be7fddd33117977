import type { JSX } from "preact";
import { Dialog, dialog } from "../parts/dialog.tsx";

const keys = [
  ["J K", "next, previous"],
  ["Enter", "open"],
  ["G R", "runs"],
  ["G I", "inbox"],
  ["G S", "sessions"],
  ["G C", "compare"],
  ["1 2 3 4 5 6", "views of a run"],
  ["Z", "zoom of the chart"],
  ["↑ ↓ ← →", "move in the chart"],
  ["Space", "play"],
  ["← →", "one event, with Shift one step"],
  ["L", "live"],
  ["F", "fork a run"],
  ["A E D S", "approve, edit, deny, skip"],
  ["N", "new run"],
  ["/", "find"],
  ["T", "light or dark"],
  ["?", "this help"],
  ["Esc", "close or stop"],
] as const;

export function openHelp(): void {
  dialog.value = () => <Help />;
}

function Help(): JSX.Element {
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

import { useEffect } from "preact/hooks";

/** What a key does. Returns `false` if it does nothing here, so that the browser handles the key. */
type KeyAction = (event: KeyboardEvent) => boolean | undefined | void;
export type KeyMap = Readonly<Record<string, KeyAction>>;

const maps: KeyMap[] = [];
let isAfterG = false;

/** Keys of the page. The map that was added last is asked first. */
export function listenForKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const name = keyName(event);
    isAfterG = name === "g";
    for (const map of maps.toReversed()) {
      const action = map[name];
      if (action === undefined || action(event) === false) continue;
      event.preventDefault();
      return;
    }
  });
}

/** The name of a key in a map: `j`, `Shift+ArrowLeft`, or `g r` after the key G. */
function keyName({ key, shiftKey }: KeyboardEvent): string {
  const plain = key.length === 1 ? key.toLowerCase() : `${shiftKey ? "Shift+" : ""}${key}`;
  return isAfterG ? `g ${plain}` : plain;
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "range";
  return target instanceof HTMLElement && target.isContentEditable;
}

/** Adds keys while a component is shown. */
export function useKeys(map: KeyMap): void {
  useEffect(() => {
    maps.push(map);
    return () => void maps.splice(maps.indexOf(map), 1);
  });
}

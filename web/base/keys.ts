import { useLayoutEffect, useState } from "preact/hooks";

/** The action of a key. Returns `false` if it does nothing here, so that the browser handles the key. */
type KeyAction = (event: KeyboardEvent) => boolean | undefined | void;
export type KeyMap = Readonly<Record<string, KeyAction>>;

/** The keys of one component. `order` is lower for a component that was drawn first before another, such as its parent. */
interface Keys {
  readonly order: number;
  map: KeyMap;
}

/** The keys of the components that are shown, by their order. */
const shown: Keys[] = [];
let count = 0;
let isAfterG = false;

/**
 * Starts to listen for keys of the page. The component that appeared last is asked first, and a part of a view
 * before the view.
 */
export function listenForKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isSearch(event.target)) event.target.blur();
    if (event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null) return;
    const name = keyName(event);
    isAfterG = name === "g";
    for (const { map } of shown.toReversed()) {
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

function isSearch(target: EventTarget | null): target is HTMLInputElement {
  return target instanceof HTMLInputElement && target.type === "search";
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return true;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "range";
  return target instanceof HTMLElement && target.isContentEditable;
}

/**
 * Adds keys while a component is shown. A key press always uses the actions of the last drawing, even if it follows
 * immediately.
 */
export function useKeys(map: KeyMap): void {
  const [keys] = useState((): Keys => ({ order: count++, map }));
  keys.map = map;
  useLayoutEffect(() => {
    shown.push(keys);
    shown.sort((one, other) => one.order - other.order);
    return () => void shown.splice(shown.indexOf(keys), 1);
  }, []);
}

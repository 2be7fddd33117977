import { useLayoutEffect } from "preact/hooks";

/**
 * Keeps the focus over a redraw. An element that the redraw moved gets it again. `onGone` is called with an element that the
 * redraw removed, if nothing else has the focus since.
 */
export function useKeptFocus(onGone?: (element: HTMLElement) => void): void {
  const { activeElement: before } = document;
  useLayoutEffect(() => {
    if (!(before instanceof HTMLElement) || before === document.body) return;
    if (document.activeElement !== document.body) return;
    if (before.isConnected) before.focus({ preventScroll: true });
    else onGone?.(before);
  });
}

import { isScrollKept } from "../app/keep-place.ts";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Distance from the end, in pixels, at which a person still reads the newest entry. */
const nearEnd = 48;

/** Opens at the newest entry and stays there, unless the person reads something above, also before a reload. */
export function useStickToEnd(scroller: { readonly current: HTMLElement | null }, size: number): void {
  const isAtEnd = useRef(!isScrollKept(".thread", "html"));
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onScroll = (): void => {
      isAtEnd.current = isNearEnd(element);
    };
    const frames = [element, window];
    for (const frame of frames) frame.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      for (const frame of frames) frame.removeEventListener("scroll", onScroll);
    };
  }, [scroller]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || !isAtEnd.current) return;
    if (scrollsWithPage(element)) element.scrollIntoView({ block: "end" });
    else element.scrollTop = element.scrollHeight;
  }, [scroller, size]);
}

/** On a narrow screen the whole page scrolls, and the thread with it. */
function scrollsWithPage(element: HTMLElement): boolean {
  return getComputedStyle(element).overflowY === "visible";
}

function isNearEnd(element: HTMLElement): boolean {
  if (!scrollsWithPage(element))
    return element.scrollHeight - element.scrollTop - element.clientHeight < nearEnd;
  const covered = Number.parseFloat(getComputedStyle(element).scrollMarginBottom);
  const below = element.getBoundingClientRect().bottom - (innerHeight - covered);
  // Something follows the thread. Who reads that has left the end, unless the whole thread is in view.
  return below < nearEnd && (below > -nearEnd || scrollY < nearEnd);
}

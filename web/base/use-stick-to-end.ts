import { isThreadKept } from "./keep-place.ts";
import { isNearEnd, scrollsWithPage } from "./near-end.ts";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Scrolls to the newest entry and follows it, unless the person reads an earlier entry, even across a reload. */
export function useStickToEnd(scroller: { readonly current: HTMLElement | null }, size: number): void {
  const isAtEnd = useRef(!isThreadKept());
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onScroll = (): void => {
      // After a reload the thread grows again below the kept place, whose distance to the end thus says nothing.
      isAtEnd.current = !isThreadKept() && isNearEnd(element);
    };
    const frames = [element, window];
    for (const frame of frames) frame.addEventListener("scroll", onScroll, { passive: true });
    // Lines break at other words in a font that arrives later.
    const onFonts = (): void => (isAtEnd.current ? showEnd(element) : undefined);
    document.fonts.addEventListener("loadingdone", onFonts);
    return () => {
      for (const frame of frames) frame.removeEventListener("scroll", onScroll);
      document.fonts.removeEventListener("loadingdone", onFonts);
    };
  }, [scroller]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd.current) showEnd(element);
  }, [scroller, size]);
}

function showEnd(element: HTMLElement): void {
  if (scrollsWithPage(element)) element.scrollIntoView({ block: "end" });
  else element.scrollTop = element.scrollHeight;
}

import { useLayoutEffect, useRef } from "preact/hooks";

/** Scrolls a strip of links sideways until the current one is in view, whenever `current` or the width of a link changes. */
export function useCurrentInView(current: string): { current: HTMLElement | null } {
  const strip = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    const { current: links } = strip;
    if (links === null) return;
    const fit = (): void => {
      const link = links.querySelector("[aria-current=page]");
      if (link !== null)
        links.scrollLeft += scrollToFit(links.getBoundingClientRect(), link.getBoundingClientRect());
    };
    fit();
    const observer = new ResizeObserver(fit);
    for (const link of links.children) observer.observe(link);
    return () => observer.disconnect();
  }, [current]);
  return strip;
}

interface Extent {
  readonly left: number;
  readonly right: number;
}

/**
 * Returns the number of whole pixels by which a strip must scroll to show an item. If an item is too long, its
 * start is shown.
 */
export function scrollToFit(frame: Extent, item: Extent): number {
  const [toStart, toEnd] = [Math.floor(item.left - frame.left), Math.ceil(item.right - frame.right)];
  if (toStart < 0) return toStart;
  return toEnd <= 0 ? 0 : Math.min(toEnd, toStart);
}

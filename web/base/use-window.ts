import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Pixels that are drawn above and below what is in view. */
const margin = 600;

interface Band {
  /** Distances from the top of the element, in pixels. */
  readonly top: number;
  readonly bottom: number;
}

interface MeasuredBand<Element extends HTMLElement> extends Band {
  readonly ref: { current: Element | null };
}

/**
 * Measures the visible part of a tall element with its surroundings, regardless of the element that scrolls. It
 * changes in steps of 200 px.
 */
export function useBand<Element extends HTMLElement>(): MeasuredBand<Element> {
  const ref = useRef<Element | null>(null);
  const [top, setTop] = useState(-margin);
  useLayoutEffect(() => {
    const measure = (): void => {
      const offset = -(ref.current?.getBoundingClientRect().top ?? 0);
      setTop(Math.floor(offset / 200) * 200 - margin);
    };
    measure();
    // Scroll events do not bubble, but the document captures those of all elements.
    document.addEventListener("scroll", measure, { capture: true, passive: true });
    window.addEventListener("resize", measure);
    return () => {
      document.removeEventListener("scroll", measure, { capture: true });
      window.removeEventListener("resize", measure);
    };
  }, []);
  return { ref, top, bottom: top + 200 + 2 * margin + window.innerHeight };
}

export interface RowWindow {
  /** Index of the first drawn row. Rows from `first` up to `end` (exclusive) are drawn. */
  readonly first: number;
  readonly end: number;
  /** Heights of the gaps that replace the rows above and below, in pixels. */
  readonly above: number;
  readonly below: number;
}

/** Returns which of `count` rows of equal height are drawn. */
export function rowsIn({ top, bottom }: Band, count: number, height: number): RowWindow {
  const first = Math.max(0, Math.min(count, Math.floor(top / height)));
  const end = Math.max(first, Math.min(count, Math.ceil(bottom / height)));
  return { first, end, above: first * height, below: (count - end) * height };
}

import { useLayoutEffect, useRef, useState } from "preact/hooks";

interface Measured<Element extends HTMLElement> {
  readonly ref: { current: Element | null };
  /** Width in pixels. 0 before the first layout. */
  readonly width: number;
  readonly height: number;
}

/** The size of an element, which changes with the window. */
export function useSize<Element extends HTMLElement>(): Measured<Element> {
  const ref = useRef<Element | null>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = (): void => {
      const { clientWidth: width, clientHeight: height } = element;
      setSize((old) => (old.width === width && old.height === height ? old : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { ref, ...size };
}

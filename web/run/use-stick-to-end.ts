import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Opens at the newest entry and stays there, unless the person reads something above. */
export function useStickToEnd(scroller: { readonly current: HTMLElement | null }, size: number): void {
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onScroll = (): void => {
      isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 48;
    };
    element.addEventListener("scroll", onScroll, { passive: true });
    return () => element.removeEventListener("scroll", onScroll);
  }, [scroller]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [scroller, size]);
}

/** Distance from the end, in pixels, at which a person still reads the newest entry. */
const nearEnd = 48;

/** Whether a person reads the newest entry of a thread. */
export function isNearEnd(thread: HTMLElement): boolean {
  if (!scrollsWithPage(thread)) return thread.scrollHeight - thread.scrollTop - thread.clientHeight < nearEnd;
  const covered = Number.parseFloat(getComputedStyle(thread).scrollMarginBottom);
  const below = thread.getBoundingClientRect().bottom - (innerHeight - covered);
  // Something follows the thread. Who reads that has left the end, unless the whole thread is in view.
  return below < nearEnd && (below > -nearEnd || scrollY < nearEnd);
}

/** On a narrow screen the whole page scrolls, and the thread with it. */
export function scrollsWithPage(thread: HTMLElement): boolean {
  return getComputedStyle(thread).overflowY === "visible";
}

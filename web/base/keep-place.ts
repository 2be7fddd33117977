import { isNearEnd } from "./near-end.ts";

/** The place of a person on the page before it is loaded again. */
interface Kept {
  readonly href: string;
  /** Distance from the top of each element that scrolls, by its selector. */
  readonly scrolls: Readonly<Record<string, number>>;
  /** Selector of the element that had the focus. */
  readonly focus: string | null;
}

const name = "reeve.place";
const scrollers = [
  // The whole page, on a narrow screen.
  "html",
  "main.page",
  ".canvas",
  ".thread",
  ".event-rows",
  ".inbox-list",
  ".inbox-detail",
  ".session-tree",
  ".agents",
  ".inspector",
];
/** The elements that scroll a thread: itself, or the whole page on a narrow screen. */
const threadScrollers = [".thread", "html"];
/** Maximum time that the page waits for its elements to appear again. Milliseconds. */
const patienceMs = 10_000;

let isKept = false;
let keptScrolls: Kept["scrolls"] = {};

/**
 * Whether the page was reloaded at the same address and still shows the same place as before. `true` until the
 * person acts.
 */
export function isPlaceKept(): boolean {
  return isKept;
}

/** Whether the page was reloaded while its thread was scrolled to an entry above the newest one, which is restored. */
export function isThreadKept(): boolean {
  return isKept && threadScrollers.some((selector) => selector in keptScrolls);
}

/** Keeps scroll positions and focus over a reload of the page. */
export function keepPlace(): void {
  addEventListener("pagehide", () => {
    try {
      sessionStorage.setItem(name, JSON.stringify(placeNow()));
    } catch {
      // A browser that keeps nothing opens the page at the top.
      return;
    }
  });
  const kept = keptPlace();
  if (kept === null || kept.href !== location.href || !isLoadedAgain()) return;
  isKept = true;
  keptScrolls = kept.scrolls;
  restore(kept);
}

/** Whether the browser loads the page again, rather than opening a link to it. */
function isLoadedAgain(): boolean {
  const [entry] = performance.getEntriesByType("navigation");
  const type = entry instanceof PerformanceNavigationTiming ? entry.type : "reload";
  return type === "reload" || type === "back_forward";
}

function placeNow(): Kept {
  const scrolls: Record<string, number> = {};
  const thread = document.querySelector<HTMLElement>(".thread");
  // A thread at its newest entry opens there, wherever that is then.
  const followed = thread !== null && !isThreadKept() && isNearEnd(thread) ? threadScrollers : [];
  for (const selector of scrollers) {
    if (followed.includes(selector)) continue;
    const element = document.querySelector(selector);
    if (element !== null && element.scrollHeight > element.clientHeight)
      scrolls[selector] = element.scrollTop;
  }
  return { href: location.href, scrolls, focus: selectorOf(document.activeElement) };
}

/** Returns a selector that finds the element again: by its task, its address, its label, or the task around it. */
function selectorOf(element: Element | null): string | null {
  if (element === null || element === document.body) return null;
  for (const attribute of ["data-task", "href", "aria-label"]) {
    const value = element.getAttribute(attribute);
    if (value !== null) return `${element.tagName.toLowerCase()}[${attribute}=${JSON.stringify(value)}]`;
  }
  const taskId = element.closest("[data-task]")?.getAttribute("data-task");
  return taskId == null ? null : `[data-task=${JSON.stringify(taskId)}] ${element.tagName.toLowerCase()}`;
}

function keptPlace(): Kept | null {
  try {
    const text = sessionStorage.getItem(name);
    return text === null ? null : (JSON.parse(text) as Kept);
  } catch {
    return null;
  }
}

/** Scrolls and focuses as soon as the elements are there, unless the person acts first. */
function restore({ scrolls, focus }: Kept): void {
  const open = new Map(Object.entries(scrolls));
  let wanted = focus;
  const observer = new MutationObserver(() => {
    for (const [selector, top] of open) {
      const element = document.querySelector(selector);
      if (element === null || element.scrollHeight - element.clientHeight < top) continue;
      element.scrollTop = top;
      open.delete(selector);
    }
    const target = wanted === null ? null : document.querySelector<HTMLElement>(wanted);
    if (target !== null) {
      target.focus({ preventScroll: true });
      wanted = null;
    }
    if (open.size === 0 && wanted === null) stop();
  });
  const stop = (): void => observer.disconnect();
  const leave = (): void => {
    isKept = false;
    stop();
  };
  observer.observe(document.body, { childList: true, subtree: true });
  for (const act of ["pointerdown", "keydown", "wheel"]) addEventListener(act, leave, { once: true });
  setTimeout(stop, patienceMs);
}

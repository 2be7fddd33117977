import { signal } from "@preact/signals";

/** The current place in the page: the parts of the path, and the query. */
export interface Place {
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
}

export const place = signal<Place>(placeOf(location.href));

function placeOf(href: string): Place {
  const url = new URL(href, location.origin);
  return { parts: url.pathname.split("/").filter((part) => part !== ""), query: url.searchParams };
}

/** Goes to a path of the page. `replace` leaves no entry in the history. */
export function go(path: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const before = location.pathname;
  if (replace) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
  // On a narrow screen the whole page scrolls. Another view opens at its top.
  if (location.pathname !== before) scrollTo(0, 0);
  place.value = placeOf(location.href);
}

/** Sets or removes a value of the query, and stays on the view. */
export function setQuery(name: string, value: string | null): void {
  const url = new URL(location.href);
  if (value === null) url.searchParams.delete(name);
  else url.searchParams.set(name, value);
  go(url.pathname + url.search, { replace: true });
}

/** Lets links of the page change the view without loading the page again. */
export function listenForLinks(): void {
  addEventListener("popstate", () => {
    place.value = placeOf(location.href);
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey)
      return;
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement) || link.origin !== location.origin || link.target !== "") return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

export const runTabs = ["chart", "timeline", "conversation", "saw", "money", "events", "messages"] as const;
export type RunTab = (typeof runTabs)[number];

/**
 * Returns the path of a run's view. `task` selects an agent in it. If `tab` is absent, the run decides which tab is
 * shown.
 */
export function runPath(runId: string, tab?: RunTab, task?: string): string {
  const path = tab === undefined ? `/runs/${runId}` : `/runs/${runId}/${tab}`;
  return `${path}${task === undefined ? "" : `?task=${task}`}`;
}

/** Returns the path for the states of an object, or of one of its keys. */
export function objectPath(
  name: string,
  { key, tenantId }: { readonly key?: string; readonly tenantId?: string | null } = {},
): string {
  const query = new URLSearchParams({ name });
  if (tenantId != null) query.set("tenant", tenantId);
  if (key !== undefined) query.set("key", key);
  return `/objects?${query.toString()}`;
}

/** The path of a conversation. */
export function sessionPath(sessionId: string): string {
  return `/sessions?id=${encodeURIComponent(sessionId)}`;
}

/** The path of an experiment, by its run. */
export function experimentPath(runId: string): string {
  return `/experiments/${runId}`;
}

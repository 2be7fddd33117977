import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, RequestError } from "../../api/client.ts";
import { asking, changedRun, connected } from "../../api/runs-feed.ts";
import { grouped } from "../../base/format.ts";
import { useKeys } from "../../base/keys.ts";
import { go } from "../../base/route.ts";
import { shownName } from "../../parts/name.tsx";
import { groups, type Group } from "../../model/run-filter.ts";
import { filterNames, filterOf, serverFilter } from "../../model/run-query.ts";

export const groupNames: Readonly<Record<Group, string>> = {
  all: "All",
  live: "Live",
  waits: "Waits for you",
  failed: "Failed, stopped",
  done: "Done",
};

/** A named address. */
export interface SavedView {
  readonly name: string;
  /** The filters, as in the address. */
  readonly query: string;
}

const storageKey = "reeve.run-views";
export const views = signal<readonly SavedView[]>(readViews());

function readViews(): readonly SavedView[] {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey) ?? "[]") as unknown;
    if (!Array.isArray(stored)) return [];
    return stored.filter(
      (each): each is SavedView => typeof each?.name === "string" && typeof each?.query === "string",
    );
  } catch {
    // The browser stores nothing for this page, or another version of the page has written something else.
    return [];
  }
}

/** Keeps the views of this browser. */
export function storeViews(next: readonly SavedView[]): void {
  views.value = next;
  try {
    localStorage.setItem(storageKey, JSON.stringify(next));
  } catch {
    // The browser stores nothing for this page. The view stays in the address.
    return;
  }
}

/** The filters of an address without what is no filter, in one order. */
function filtersIn(query: URLSearchParams): string {
  const kept = [...query].filter(([name]) => (filterNames as readonly string[]).includes(name));
  return new URLSearchParams(
    kept.toSorted((one, other) => (one.join("=") < other.join("=") ? -1 : 1)),
  ).toString();
}

interface RunViewsProps {
  readonly query: URLSearchParams;
  /** Names the filters of the address. `null` until it is loaded. */
  readonly save: ((props: { readonly query: string }) => JSX.Element) | null;
}

/** The views with their counts. The address of a view is the view: it works in another browser as well. */
export function RunViews({ query, save: Save }: RunViewsProps): JSX.Element {
  const here = filtersIn(query);
  const named = query.get("view");
  const isKnown = views.value.some(({ name }) => name === named);
  const saved = named !== null && !isKnown ? [...views.value, { name: named, query: here }] : views.value;
  const isCustom = saved.some((view) => view.query === here);
  const group = filterOf(query).group;
  const root = useRef<HTMLDivElement>(null);
  useKeys({ v: () => root.current?.querySelector<HTMLElement>("[aria-pressed=true]")?.focus() });
  /** Left and right move between the views, as Tab does. */
  const move = (event: KeyboardEvent): void => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const all = [...(root.current?.querySelectorAll<HTMLElement>("[aria-pressed]") ?? [])];
    const at = all.findIndex((each) => each === event.target);
    if (by !== 0 && at >= 0) all[at + by]?.focus();
  };
  return (
    <div class="views" role="group" aria-label="Views" ref={root} onKeyDown={move}>
      {groups.map((each) => (
        <View
          key={each}
          name={groupNames[each]}
          query={each === "all" ? "" : `show=${each}`}
          isCurrent={!isCustom && each === group}
          count={each === "waits" ? asking.value.runs.size : null}
        />
      ))}
      {saved.map((view) => (
        <View
          key={`saved ${view.name}`}
          name={view.name}
          query={view.query}
          isCurrent={view.query === here}
          count={null}
          onRemove={() => storeViews(views.value.filter(({ name }) => name !== view.name))}
        />
      ))}
      {here !== "" &&
        !views.value.some((view) => view.query === here) &&
        !groups.some((each) => here === `show=${each}`) &&
        Save !== null && <Save query={here} />}
    </div>
  );
}

interface ViewProps {
  readonly name: string;
  readonly query: string;
  readonly isCurrent: boolean;
  /** Counted by the server if `null`. */
  readonly count: number | null;
  readonly onRemove?: () => void;
}

function View({ name, query, isCurrent, count, onRemove }: ViewProps): JSX.Element {
  const words = useRunCount(query, count);
  const address = (): string => {
    const next = new URLSearchParams(query);
    if (onRemove !== undefined) next.set("view", name);
    return `/runs${next.size === 0 ? "" : `?${next}`}`;
  };
  return (
    <span class="view-tab">
      <button aria-pressed={isCurrent} onClick={() => go(address())} title={shownName(name)}>
        <span class="cut">
          <bdi>{shownName(name)}</bdi>
        </span>
        <span class="count">{words}</span>
      </button>
      {onRemove !== undefined && isCurrent && (
        <button
          class="remove"
          aria-label={`Forget the view ${shownName(name)}`}
          onClick={() => {
            onRemove();
            go("/runs");
          }}
        >
          ×
        </button>
      )}
    </span>
  );
}

const countEveryMs = 2_000;

/** How many runs the server counts for the filters of an address, in words, again after a change. Not counted if known. */
export function useRunCount(query: string, known: number | null = null): string {
  const [words, setWords] = useState("");
  useEffect(() => {
    if (known !== null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      timer = undefined;
      try {
        const filter = serverFilter(filterOf(new URLSearchParams(query)));
        const { count, isMore } = await get("/api/run-count", { query: filter, signal: stop.signal });
        setWords(`${grouped(count)}${isMore ? "+" : ""}`);
      } catch (error) {
        // The next change counts again.
        if (!stop.signal.aborted && !(error instanceof RequestError)) throw error;
      }
    };
    const again = (): void => {
      timer ??= setTimeout(() => void read(), countEveryMs);
    };
    const unfollow = [connected.subscribe(() => void read()), changedRun.subscribe(again)];
    return () => {
      stop.abort();
      clearTimeout(timer);
      for (const end of unfollow) end();
    };
  }, [query, known]);
  return known === null ? words : grouped(known);
}

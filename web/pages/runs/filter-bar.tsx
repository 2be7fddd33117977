import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useKeys } from "../../base/keys.ts";
import { go, place, setQuery } from "../../base/route.ts";
import { Icon } from "../../parts/icon.tsx";
import { shownName } from "../../parts/name.tsx";
import { filterWord } from "../../../src/surfaces/view/run-words.ts";
import { filterOf, tokensOf, tokenWords, type FilterToken } from "../../model/run-query.ts";

/** Adds a filter to the address, or replaces the one of the same name. A list of runs may have several statuses and pairs. */
export function addFilter(name: string, value: string): void {
  const { query } = place.peek();
  const next = new URLSearchParams(query);
  if (name === "status" || name === "meta") {
    if (!next.getAll(name).includes(value)) next.append(name, value);
  } else next.set(name, value);
  show(next);
}

/** Removes a filter from the address. */
export function removeFilter({ name, value }: FilterToken): void {
  const next = new URLSearchParams(
    [...place.peek().query].filter(([key, each]) => key !== name || each !== value),
  );
  show(next);
}

/** Goes to the list with these filters. They are no saved view any more. */
function show(next: URLSearchParams): void {
  next.delete("view");
  go(`/runs${next.size === 0 ? "" : `?${next}`}`);
}

const days = [
  ["today", "Today"],
  ["yesterday", "Yesterday"],
  ["7d", "7 days"],
] as const;

/** One token per filter, a field for more, days, and the order. */
export function FilterBar(): JSX.Element {
  const { query } = place.value;
  const { started, sort, words } = filterOf(query);
  const [problem, setProblem] = useState<string | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const tokens = tokensOf(query);
  useKeys({ "/": () => field.current?.focus() });
  const enter = (text: string): void => {
    const next = new URLSearchParams(query);
    const left: string[] = [];
    let bad: string | null = null;
    for (const word of text.trim().split(/\s+/u)) {
      const found = filterWord(word);
      if (found === "problem") bad = word;
      if (found === null || found === "problem") left.push(word);
      else if (found.name === "status" || found.name === "meta") next.append(found.name, found.value);
      else next.set(found.name, found.value);
    }
    setProblem(bad);
    next.delete("find");
    if (left.join("") !== "") next.set("find", left.join(" "));
    show(next);
  };
  return (
    <>
      <div class="tools filters">
        <label class="find tokens">
          <Icon name="find" />
          {tokens.map((token) => (
            <span class="chip token" key={`${token.name} ${token.value}`}>
              {token.label}{" "}
              <b class="cut">
                <bdi>{shownName(tokenWords(token))}</bdi>
              </b>
              <button
                type="button"
                aria-label={`Remove the filter ${token.label} ${shownName(tokenWords(token))}`}
                onClick={() => removeFilter(token)}
              >
                ×
              </button>
            </span>
          ))}
          <input
            ref={field}
            type="search"
            aria-label="Filter runs"
            placeholder={
              tokens.length === 0 ? "Filter: user=mara, order=8841, cost>1" : "Add: agent, tenant, cost>1"
            }
            value={words}
            onInput={(event) => {
              setProblem(null);
              setQuery("find", event.currentTarget.value || null);
            }}
            onKeyDown={(event) => {
              const { value } = event.currentTarget;
              const last = tokens.at(-1);
              if (event.key === "Enter") enter(value);
              else if (event.key === "Backspace" && value === "" && last !== undefined) removeFilter(last);
            }}
          />
        </label>
        <div class="segments" role="group" aria-label="Started">
          {days.map(([value, name]) => (
            <button
              key={value}
              aria-pressed={started === value}
              onClick={() => {
                if (started === value) removeFilter({ name: "started", value, label: "" });
                else addFilter("started", value);
              }}
            >
              {name}
            </button>
          ))}
        </div>
        <button
          class="button"
          onClick={() => setQuery("sort", sort === "newest" ? "cost" : null)}
          title="Sort by time or by cost"
        >
          Sort: {sort === "newest" ? "time" : "cost"} ↓
        </button>
      </div>
      {problem !== null && (
        <p class="problem" role="alert">
          <code>{problem}</code> is no filter. Use a status such as failed, or days such as yesterday, 7d or
          2026-03-31.
        </p>
      )}
    </>
  );
}

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { go } from "../../base/route.ts";
import { storeViews, views } from "./run-views.tsx";

const mostViews = 20;
const longestName = 60;

/** Names the filters of the address. */
export function SaveView({ query }: { readonly query: string }): JSX.Element {
  const [name, setName] = useState<string | null>(null);
  if (name === null)
    return (
      <button class="save-view" onClick={() => setName("")} disabled={views.value.length >= mostViews}>
        + Save view
      </button>
    );
  const save = (event: Event): void => {
    event.preventDefault();
    const wanted = name.trim();
    if (wanted === "") return;
    storeViews([...views.value.filter((view) => view.name !== wanted), { name: wanted, query }]);
    setName(null);
    const next = new URLSearchParams(query);
    next.set("view", wanted);
    go(`/runs?${next}`, { replace: true });
  };
  return (
    <form class="row" onSubmit={save}>
      <input
        class="field"
        aria-label="Name of the view"
        maxLength={longestName}
        value={name}
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person has just asked for this field
        autoFocus
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button class="button" type="submit" disabled={name.trim() === ""}>
        Save
      </button>
      <button class="link" type="button" onClick={() => setName(null)}>
        Back
      </button>
    </form>
  );
}

import type { JSX } from "preact";
import { CopyButton } from "../../parts/copy-button.tsx";
import { openNewRun } from "../../parts/open-form.tsx";
import { counted } from "../../base/format.ts";
import { setQuery } from "../../base/route.ts";
import { filterOf, tokensOf, tokenWords } from "../../model/run-query.ts";
import { shownName } from "../../parts/name.tsx";
import { removeFilter } from "./filter-bar.tsx";
import { groupNames } from "./run-views.tsx";

const commands = [
  ["reeve demo", "12 agents, no key needed"],
  ['reeve run "What does this project do?"', "one agent, one question"],
  ['reeve run --continue "And its licence?"', "the same conversation"],
] as const;

/** Says what a run is, and how to start one. */
export function EmptyRuns(): JSX.Element {
  return (
    <main class="empty" id="main">
      <CompanyDrawing />
      <h1>No runs yet</h1>
      <p>
        A run is one task given to one agent, and everyone it hires. It shows up here the moment it starts,
        from this page or from the terminal.
      </p>
      <div class="actions">
        <button class="button primary" onClick={openNewRun}>
          New run
        </button>
      </div>
      <h2>Or type</h2>
      {commands.map(([command, about]) => (
        <div class="command-line" key={command}>
          <code class="cut">{command}</code>
          <span class="dim wide-only">{about}</span>
          <CopyButton text={command} label={`Copy ${command}`} />
        </div>
      ))}
    </main>
  );
}

/** A small company: one agent and two reports. */
function CompanyDrawing(): JSX.Element {
  return (
    <svg class="drawing" width="280" height="104" viewBox="0 0 280 104" aria-hidden="true">
      <path class="string" stroke-width="8" d="M134 32v14q0 8-8 8H64q-8 0-8 8v10" />
      <path class="string" stroke-width="5" d="M147 32v14q0 8 8 8h62q8 0 8 8v10" />
      <rect class="card-shape" x="80" y=".5" width="120" height="32" rx="6" />
      <rect class="card-shape dashed" x=".5" y="71" width="112" height="32" rx="6" />
      <rect class="card-shape dashed" x="168" y="71" width="111" height="32" rx="6" />
      <rect class="track" x="92" y="18" width="96" height="6" rx="2" />
      <rect class="track" x="12" y="88" width="88" height="6" rx="2" />
      <rect class="track" x="180" y="88" width="88" height="6" rx="2" />
    </svg>
  );
}

/** Says that no run fits, and offers to remove the filter that was added last. */
export function NoneFits({
  query,
  all,
}: {
  readonly query: URLSearchParams;
  readonly all: number;
}): JSX.Element {
  const { words, group } = filterOf(query);
  const last = tokensOf(query).at(-1);
  if (words === "" && last === undefined)
    return <p class="dim none">No run is here. {groupNames[group]} fills as runs change.</p>;
  return (
    <p class="dim none">
      No run fits {words !== "" && <code>{words}</code>}
      {words === "" &&
        tokensOf(query).map((token, at) => (
          <span key={`${token.name} ${token.value}`}>
            {at > 0 && ", "}
            {token.label.toLowerCase()}{" "}
            <b>
              <bdi>{shownName(tokenWords(token))}</bdi>
            </b>
          </span>
        ))}
      . {words === "" ? "All runs were looked at." : `All ${counted(all, "run")} were looked at.`}{" "}
      {words !== "" ? (
        <button class="link" onClick={() => setQuery("find", null)}>
          Clear the filter
        </button>
      ) : (
        last !== undefined && (
          <button class="link" onClick={() => removeFilter(last)}>
            Remove {last.label.toLowerCase()} <bdi>{shownName(tokenWords(last))}</bdi>
          </button>
        )
      )}
    </p>
  );
}

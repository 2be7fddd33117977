import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, post } from "../api/client.ts";
import { isOffline } from "../api/connection.ts";
import type { Run } from "../api/types.ts";
import { access } from "../model/top-up-left.ts";
import { Icon } from "./icon.tsx";
import { shownName } from "./name.tsx";

/** The name of the score that the thumbs buttons set. */
const thumbs = "thumbs";
/** Number of scores of a run that are shown. The others are counted. */
const mostShown = 3;

/** A score in at most two decimals. */
export function scoreText(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Shows the current scores of a run, each with its name and author. */
export function ScoreChips({ scores }: { readonly scores: Run["scores"] }): JSX.Element | null {
  if (scores === undefined || scores.length === 0) return null;
  const more = scores.length - mostShown;
  return (
    <>
      {scores.slice(0, mostShown).map(({ name, by, value }) => (
        <span class="chip score" key={`${name} ${by}`} title={`${shownName(name)} by ${shownName(by)}`}>
          <span class="cut">{shownName(name)}</span> <b>{scoreText(value)}</b>
        </span>
      ))}
      {more > 0 && <span class="dim">and {more} more</span>}
    </>
  );
}

interface ThumbsProps {
  readonly run: Run;
  readonly onScored: (run: Run) => void;
}

/** Two buttons that judge a run. A click on the one that was chosen before changes nothing. */
export function Thumbs({ run, onScored }: ThumbsProps): JSX.Element {
  const [problem, setProblem] = useState<string | null>(null);
  const self = access.value;
  const author = self === null ? null : (self.userId ?? self.name);
  const own = run.scores?.find(({ name, by }) => name === thumbs && by === author)?.value;
  const isOff = isOffline.value || self === null || self.scope === "read";
  const give = (value: number): void => {
    setProblem(null);
    post("/api/runs/{runId}/scores", { params: { runId: run.runId }, body: { name: thumbs, value } }).then(
      onScored,
      (error: unknown) => setProblem(errorText(error)),
    );
  };
  return (
    <span class="thumbs">
      {[1, 0].map((value) => (
        <button
          key={value}
          class="icon-button"
          aria-label={value === 1 ? "Good run" : "Bad run"}
          aria-pressed={own === value}
          disabled={isOff}
          onClick={() => give(value)}
        >
          <Icon name={value === 1 ? "good" : "bad"} />
        </button>
      ))}
      {problem !== null && (
        <span class="bad" role="alert">
          {problem}
        </span>
      )}
    </span>
  );
}

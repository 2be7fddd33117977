import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { errorText, get, post } from "../../api/client.ts";
import { isOffline } from "../../api/connection.ts";
import type { Run } from "../../api/types.ts";
import { useRead } from "../../api/use-read.ts";
import { runPath } from "../../base/route.ts";
import { runCancelWords } from "../../../src/surfaces/view/cancel-words.ts";
import { failureWords, nextWords, shownCode } from "../../model/words/failure-words.ts";
import { inputText } from "../../model/words/input-text.ts";
import { endWord, lookOf } from "../../model/status.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { Prose } from "../../parts/prose.tsx";

interface EndedRunProps {
  readonly run: Run;
  /** Whether the session has no entry of the run, so that the message is shown here. */
  readonly isUnsent: boolean;
  readonly onChanged: () => void;
}

/** A run of a conversation that ended without an answer: the message, the error, and what to do next. */
export function EndedRun({ run, isUnsent, onChanged }: EndedRunProps): JSX.Element {
  const { runId, status, agentId } = run;
  const [state, setState] = useState<string | null>(null);
  const { value, problem } = useRead(
    (signal) => get("/api/runs/{runId}/tasks", { params: { runId }, signal }),
    [runId, status],
  );
  const failure = value?.failure ?? null;
  const cancelled = value === null ? null : runCancelWords(value);
  const again = async (): Promise<void> => {
    try {
      await post("/api/runs/{runId}/resend", { params: { runId } });
      setState("Sent again.");
      onChanged();
    } catch (error) {
      setState(errorText(error));
    }
  };
  return (
    <>
      {isUnsent && (
        <div class="say">
          <div>
            <Prose text={value === null ? (run.title ?? "") : inputText(value.input)} />
          </div>
        </div>
      )}
      <section class="fault letter" aria-label={`${agentId} did not answer`}>
        <header>
          <Glyph look={lookOf(status)} status={status} />
          {endWord(status, failure)}
          {cancelled !== null && <span class="label">{cancelled}</span>}
          {failure !== null && status !== "cancelled" && <code>{shownCode(failure)}</code>}
        </header>
        <div class="letter-body">
          {failure !== null && status !== "cancelled" && (
            <>
              <p class="lead">{failureWords(failure)}</p>
              <p class="mid">{nextWords(failure)}</p>
            </>
          )}
          {value === null && problem !== null && <p class="problem">{problem}</p>}
          {state !== null && <p role="status">{state}</p>}
          <div class="actions">
            {isUnsent && (
              <button class="button primary" disabled={isOffline.value} onClick={() => void again()}>
                Send it again
              </button>
            )}
            <a class="button" href={runPath(runId)}>
              Open the run
            </a>
          </div>
        </div>
      </section>
    </>
  );
}

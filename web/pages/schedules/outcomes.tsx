import { effect } from "@preact/signals";
import type { JSX, Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, RequestError } from "../../api/client.ts";
import { asking, changedRun, connected } from "../../api/runs-feed.ts";
import type { Run, Schedule } from "../../api/types.ts";
import { runPath } from "../../base/route.ts";
import { lookOfRun, runWord } from "../../model/status.ts";
import { Glyph } from "../../parts/glyph.tsx";

/** Number of runs of a schedule that are shown. */
const shown = 5;

/** The last runs of a schedule, the newest first, once its row has been in view. */
export function useOutcomes(schedule: Schedule): {
  readonly row: Ref<HTMLTableRowElement>;
  readonly runs: readonly Run[];
} {
  const row = useRef<HTMLTableRowElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (row.current === null || isSeen) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    observer.observe(row.current);
    return () => observer.disconnect();
  }, [isSeen]);
  const [runs, setRuns] = useState<readonly Run[]>([]);
  useEffect(() => (isSeen ? followRuns(schedule, setRuns) : undefined), [isSeen, schedule.id]);
  return { row, runs };
}

/**
 * Reads the last runs, and again after each change of one. A read that is under way is not interrupted, so that a schedule
 * that fires every second is shown as well. Returns a function that stops.
 */
function followRuns(schedule: Schedule, onRead: (runs: readonly Run[]) => void): () => void {
  const stop = new AbortController();
  let [isReading, isStale] = [false, false];
  const read = async (): Promise<void> => {
    isStale = isReading;
    if (isReading) return;
    isReading = true;
    try {
      onRead(await readRuns(schedule, stop.signal));
    } catch (error) {
      // The banner says that the server does not answer, and the next change reads again.
      if (!(error instanceof RequestError) && !stop.signal.aborted) throw error;
    } finally {
      isReading = false;
    }
    if (isStale && !stop.signal.aborted) await read();
  };
  const unfollow = [
    effect(() => {
      void connected.value;
      void read();
    }),
    effect(() => {
      if (changedRun.value?.metadata["schedule"] === schedule.name) void read();
    }),
  ];
  return () => {
    for (const end of unfollow) end();
    stop.abort();
  };
}

/** Schedules of several tenants and users may have the same name. */
async function readRuns(
  { name, tenantId, userId, createdAt }: Schedule,
  signal: AbortSignal,
): Promise<readonly Run[]> {
  const { runs } = await get("/api/runs", {
    query: {
      metadata: [`schedule=${name}`],
      createdAfter: createdAt - 1,
      limit: shown,
      ...(tenantId !== null && { tenantId }),
      ...(userId !== null && { userId }),
    },
    signal,
  });
  return runs.filter((run) => run.tenantId === tenantId && run.userId === userId);
}

/** The last runs as marks, the oldest first, each with its outcome in words. */
export function Outcomes({ runs }: { readonly runs: readonly Run[] }): JSX.Element | null {
  if (runs.length === 0) return null;
  return (
    <span class="outcomes">
      {runs.toReversed().map((run) => {
        const word = runWord(run, asking.value);
        return (
          <a key={run.runId} href={runPath(run.runId)} title={word} aria-label={`${word}: ${run.runId}`}>
            <Glyph look={lookOfRun(run, asking.value)} status={run.status} />
          </a>
        );
      })}
    </span>
  );
}

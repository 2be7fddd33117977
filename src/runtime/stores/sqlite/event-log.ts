import type { RunKey } from "../codec/stored-run.ts";
import type { EventSource } from "../sql/event-log.ts";
import type { LogSource } from "../sql/log-check.ts";
import type { Tables } from "./db/tables.ts";
import type { CommitRows } from "./rows/commit-rows.ts";

/** Reads events from the file. */
export function eventSource(tables: Tables, rows: CommitRows): EventSource {
  return {
    end: (runId) =>
      tables.read(() => {
        const run = tables.run(runId);
        return { run, ...rows.end(run) };
      }),
    start: (known, seq) =>
      tables.read(() => ({
        run: tables.find(known.runId) ?? known,
        first: seq === 0 ? 0 : rows.numberOf(known, seq),
      })),
    pages: (run, first, end) => rows.eventPages(run, first, end),
    events: (run, row) => rows.events(run, row),
  };
}

/** Reads logs from the file for their check. */
export function logSource(tables: Tables, rows: CommitRows): LogSource {
  return {
    end: (runId) =>
      tables.read(() =>
        tables.database.transaction("DEFERRED", () => {
          const run = tables.run(runId);
          return { run, number: rows.endNumber(run) };
        }),
      ),
    pages: (run, first, end) => rows.pages(run, first, end),
    decode: (run: RunKey, row) => rows.decodeAlone(run, row),
  };
}

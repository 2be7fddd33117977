import type { EventSource } from "../sql/event-log.ts";
import type { LogSource } from "../sql/log-check.ts";
import type { Tables } from "./db/tables.ts";
import type { CommitRows } from "./rows/commit-rows.ts";

/** Reads events, and logs for their check, from the tables. */
export function eventSource(tables: Tables, rows: CommitRows): EventSource & LogSource {
  const { database } = tables;
  return {
    end: (runId) => rows.end(runId),
    start: (known, seq, end) =>
      database.read(async (queries) => ({
        run: (await tables.find(queries, known.runId)) ?? known,
        first: seq === 0 ? 0 : await rows.numberOf(queries, known, seq, end),
      })),
    pages: (run, first, end) => rows.pages(run, first, end),
    events: (run, row) => rows.events(run, row),
    decode: (run, row) => rows.decodeAlone(run, row),
  };
}

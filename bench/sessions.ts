import { largeResults } from "./large-results.ts";
import { longSessions } from "./long-sessions.ts";
import type { Row } from "./row.ts";

/** What sessions and large values cost. */
export async function* rows(): AsyncIterable<Row> {
  yield* longSessions();
  yield* largeResults();
}

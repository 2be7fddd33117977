import { Fault } from "../../../kernel/index.ts";
import { route } from "../../http/route.ts";
import { runParams } from "../../http/schema/run-schemas.ts";
import { sessionParams } from "../../http/schema/session-schemas.ts";
import { flag, integer, object, optional, text } from "../../http/schema/schema.ts";
import { nextSeq } from "../../http/streams/open-streams.ts";
import { SessionPosition } from "../../http/streams/session-position.ts";
import { followSession } from "../../http/streams/session-stream.ts";
import { sseFrame } from "../../http/streams/sse-stream.ts";
import { findRun } from "./find-run.ts";

const stream = {
  status: 200,
  description: "Server-sent events. Comment lines are heartbeats.",
  schema: text(),
  contentType: "text/event-stream",
};
const nothingNew = { status: 204, description: "The run has ended, and the reader has all its events." };

const streamRun = route({
  id: "runs.stream",
  method: "GET",
  path: "/api/runs/{runId}/stream",
  summary:
    "Follow a run. The id of an event is its seq; `Last-Event-ID` resumes after it. Deltas have no id. The last event has the type `end`.",
  scope: "read",
  isStream: true,
  params: runParams,
  query: object({
    from: optional(
      integer({ minimum: 0, description: "Seq of the first event, if there is no Last-Event-ID." }),
    ),
    deltas: optional(flag({ description: "Whether text deltas are sent. Default: true." })),
  }),
  responses: [stream, nothingNew],
  handle: async (request) => {
    const run = await findRun(request);
    const { access, disconnect, server, query } = request;
    const lastEventId = request.request.headers.get("last-event-id");
    const from = nextSeq(lastEventId, query.from);
    // An EventSource that gets 204 does not come back. Without it, it would reconnect to an ended run forever.
    if (
      lastEventId !== null &&
      (await run.summary()).endedAt !== null &&
      (await isEmpty(run.events({ fromSeq: from, follow: false })))
    )
      return { status: 204 };
    const { deltas = true } = query;
    return server.streams.open(access, disconnect, (to) =>
      server.streams.hub.follow(run, to, { from, deltas }),
    );
  },
});

async function isEmpty(items: AsyncIterable<unknown>): Promise<boolean> {
  const reader = items[Symbol.asyncIterator]();
  const { done } = await reader.next();
  await reader.return?.();
  return done === true;
}

const streamSession = route({
  id: "sessions.stream",
  method: "GET",
  path: "/api/sessions/{sessionId}/stream",
  summary:
    "Follow a session: the events of its runs, one run after the other. The id of an event is RUN:SEQ, with further positions for resumed runs; `Last-Event-ID` resumes after it.",
  scope: "read",
  isStream: true,
  params: sessionParams,
  responses: [stream],
  handle: async ({ runtime, access, disconnect, server, request, params: { sessionId } }) => {
    const from = SessionPosition.after(request.headers.get("last-event-id"));
    const { runs } = await runtime.list({ sessionId, limit: 1 });
    if (runs.length === 0 && (await runtime.sessions.get(sessionId)) === undefined)
      throw new Fault("not_found", `session ${sessionId} does not exist`, { details: { sessionId } });
    const changes = server.streams.changes(access);
    return server.streams.open(access, disconnect, (to) =>
      followSession(to, { runtime, sessionId, from, changes }),
    );
  },
});

const streamRuns = route({
  id: "runs.changes",
  method: "GET",
  path: "/api/stream",
  summary:
    "Follow all runs: after `ready`, each changed run is sent as it is in the list. Nothing is replayed; read the list again after reconnecting.",
  scope: "read",
  isStream: true,
  responses: [stream],
  handle: ({ access, disconnect, server }) => {
    const changes = server.streams.changes(access);
    return server.streams.open(access, disconnect, async (to) => {
      await changes.listen((changed) => {
        void to.send(changed.map((run) => sseFrame(run)).join(""));
      }, to.signal);
      await to.send(sseFrame({}, { event: "ready" }));
      await new Promise<void>((resolve) =>
        to.signal.addEventListener("abort", () => resolve(), { once: true }),
      );
    });
  },
});

export const streamRoutes = [streamRun, streamSession, streamRuns] as const;

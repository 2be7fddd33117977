import { Fault } from "../../../kernel/index.ts";
import { createServer } from "../../server/index.ts";
import { RouteClient, RequestError, unlessAbsent } from "../../client/route-client.ts";
import { faultOf, ownLimits, ownPlace, remotePlace, tokenVariable } from "../chat/client/server-place.ts";
import { onlyMatch } from "../setup/find-run.ts";
import { withRuns } from "../setup/idle-engine.ts";
import type { StoreOptions } from "../setup/stored-runs.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { printable, type Terminal } from "../terminal/terminal.ts";

/** The options of `reeve watch`, as texts from the command line. */
export interface WatchOptions extends StoreOptions {
  readonly url?: string;
  readonly plain?: boolean;
}

/**
 * Shows the agents of a run, or all runs of a store or a server, until the person leaves. The command executes no
 * runs.
 */
export async function watchCommand(
  name: string | undefined,
  options: WatchOptions,
  terminal: Terminal,
): Promise<ExitKind> {
  const { url, plain = false, store } = options;
  if (!plain && name === undefined) refuseWithoutTerminal(terminal);
  const watch = async (client: RouteClient, place: string): Promise<ExitKind> => {
    const runId = name === undefined ? undefined : await findRunId(client, name, place);
    if (!plain) refuseWithoutTerminal(terminal);
    // What follows the runs asks a server that does not answer again and again.
    if (runId === undefined) await client.get("/api/facts");
    const front = { client, terminal, place, runId };
    if (plain) return (await import("./plain-watch.ts")).plainWatch(front);
    return (await import("./interactive-watch.ts")).interactiveWatch(front);
  };
  try {
    if (url !== undefined) {
      const place = remotePlace(url, terminal.env[tokenVariable]);
      return await watch(new RouteClient(place), url);
    }
    return await withRuns(options, terminal, async (_store, runtime): Promise<ExitKind> => {
      const server = createServer(runtime, {
        agents: () => [],
        mcp: false,
        tokens: null,
        limits: ownLimits,
        onError: ({ message }) => terminal.say(`reeve: ${printable(message)}`),
      });
      try {
        return await watch(new RouteClient(ownPlace(server)), store);
      } finally {
        await server.drain();
      }
    });
  } catch (error) {
    throw error instanceof RequestError ? faultOf(error) : error;
  }
}

/** Throws if the output is a pipe, or a terminal on which the cursor cannot be moved. */
function refuseWithoutTerminal({ env, canAsk, isWatched }: Terminal): void {
  if (canAsk && isWatched && env["TERM"] !== "dumb") return;
  const lack =
    canAsk && isWatched ? "TERM is dumb, so the cursor cannot be moved" : "there is no terminal to draw on";
  throw new Fault(
    "invalid_argument",
    `reeve watch needs a terminal: ${lack}; use reeve watch --plain for lines, reeve ps for the runs, or reeve logs -f RUN for the events of one`,
  );
}

/**
 * Returns the id of the run that a person means by a text: the whole id, or a prefix with which only one run id
 * begins. A prefix takes O(runs).
 */
async function findRunId(client: RouteClient, text: string, place: string): Promise<string> {
  if (/^run_[\w-]{1,64}$/u.test(text)) {
    const run = await unlessAbsent(client.get("/api/runs/{runId}", { params: { runId: text } }));
    if (run !== undefined) return run.runId;
  }
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page: { readonly runs: readonly { readonly runId: string }[]; readonly next: string | null } =
      await client.get("/api/runs", { query: { limit: 500, ...(after !== null && { after }) } });
    for (const { runId } of page.runs) if (runId.startsWith(text)) found.push(runId);
    after = page.next;
  } while (after !== null);
  return onlyMatch(
    found,
    text,
    `run ${printable(text)} not found in ${printable(place)}; reeve watch lists its runs, and --store or --url chooses another place`,
  );
}

import type { JsonObject } from "../../kernel/index.ts";
import type { GatewayDesk } from "../../capabilities/gateway/gateway-desk.ts";
import type { PageLogin } from "./access/page-login.ts";
import type { ExperimentReader } from "./experiment-reader.ts";
import type { FiguresOfRuns } from "./figures/run-figures.ts";
import type { WorkingRuns } from "./figures/working-runs.ts";
import type { RunViews } from "./run-views.ts";
import type { ServedAgents } from "./served-agents.ts";
import type { OpenStreams } from "./streams/open-streams.ts";

/** What all routes of a server share. */
export interface ServerParts {
  readonly agents: ServedAgents;
  /** Names of workflows that callers may start although only other processes host them. */
  readonly workflows: ReadonlySet<string>;
  readonly streams: OpenStreams;
  /** The figures that lists of runs show. */
  readonly figures: FiguresOfRuns;
  /** The active runs, and the crashes of the current day. */
  readonly working: WorkingRuns;
  /** The views of runs that were read last. */
  readonly views: RunViews;
  /** The experiments that were read last. */
  readonly experiments: ExperimentReader;
  /** The gateway runs of the store. Absent if the server was created without a gateway. */
  readonly gateway?: GatewayDesk;
  /** CSS rules that load the fonts of the page. Empty if the server has no page. */
  readonly pageFonts: string;
  /** Absent if the server needs no token. */
  readonly login?: PageLogin;
  /** The OpenAPI document of all routes. */
  readonly document: () => JsonObject;
  /** Aborts when the server begins to drain. */
  readonly draining: AbortSignal;
  /** Throws `closed` if the server is draining and therefore starts no new work. */
  readonly refuseIfDraining: () => void;
  /** Reports an error that callers see only as `internal`. */
  readonly report: (error: unknown) => void;
}

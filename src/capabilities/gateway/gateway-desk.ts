import type { RunId } from "../../kernel/index.ts";
import type { AccessFigures } from "./access.ts";
import type { GatewayRuns } from "./gateway-runs.ts";
import type { GatewayToken, GatewayTokens } from "./gateway-tokens.ts";

/** The gateway of this process. */
interface OwnGateway {
  readonly url: string;
  readonly runs: Pick<GatewayRuns, "figures" | "driven">;
}

/** The state of a gateway run that a person may see in addition to its log. */
export interface GatewayRunState {
  readonly tokens: readonly Omit<GatewayToken, "hash" | "runId">[];
  /** Figures since this process executes the run. `null` if it does not. */
  readonly figures: AccessFigures | null;
  /** Addresses of the other servers on the store, one of which may execute the run. */
  readonly others: readonly string[];
}

/**
 * Provides what the page and the API of a server show about gateway runs. It also revokes tokens, which is not a
 * command to a run.
 */
export class GatewayDesk {
  readonly #tokens: GatewayTokens;
  readonly #own: OwnGateway | undefined;

  constructor(tokens: GatewayTokens, own?: OwnGateway) {
    this.#tokens = tokens;
    this.#own = own;
  }

  /** Address of the gateway of this process, or `null` if it has none. */
  get url(): string | null {
    return this.#own?.url ?? null;
  }

  /** The runs that this process executes. */
  get driven(): readonly RunId[] {
    return this.#own?.runs.driven() ?? [];
  }

  /** Figures of a run since this process executes it. `null` if it does not. */
  figures(runId: RunId): AccessFigures | null {
    return this.#own?.runs.figures(runId) ?? null;
  }

  async describe(runId: RunId): Promise<GatewayRunState> {
    const tokens = await this.#tokens.ofRun(runId);
    const servers = await this.#tokens.servers();
    return {
      tokens: tokens.map(({ ending, createdAt, expiresAt }) => ({ ending, createdAt, expiresAt })),
      figures: this.figures(runId),
      others: servers.map(({ url }) => url).filter((url) => url !== this.url),
    };
  }

  /** Deletes the tokens of a run. All servers then refuse them. */
  async revoke(runId: RunId): Promise<void> {
    await this.#tokens.revoke(runId);
  }
}

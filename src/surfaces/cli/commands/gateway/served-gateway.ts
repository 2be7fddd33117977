import { Gateway } from "../../../../capabilities/gateway/gateway.ts";
import type { GatewayOptions } from "../../../../capabilities/gateway/gateway-options.ts";
import { GatewayDesk } from "../../../../capabilities/gateway/gateway-desk.ts";
import { GatewayRuns } from "../../../../capabilities/gateway/gateway-runs.ts";
import { GatewayTokens, ServerProof } from "../../../../capabilities/gateway/gateway-tokens.ts";
import { upstreamsFrom } from "../../../../capabilities/gateway/known-upstreams.ts";
import type { Runtime, Store } from "../../../../kernel/index.ts";
import { portOption } from "../../terminal/number-option.ts";

interface ServedGatewayOptions {
  /** The option `gateway` of `reeve.config.ts`. */
  readonly config: Partial<GatewayOptions> | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly store: Pick<Store, "records">;
  readonly runtime: Runtime;
  /** The port of the server. The gateway uses the next port by default. */
  readonly serverPort: number;
  /** The option `--gateway-port`. */
  readonly port: string | undefined;
  readonly onWarning: (text: string) => void;
}

/** The gateway of `reeve serve`. */
export interface ServedGateway {
  readonly url: string;
  /** What the server shows of it. */
  readonly desk: GatewayDesk;
  close(): Promise<void>;
}

/**
 * Opens the gateway of a server and executes the gateway runs of the store. Returns `undefined` if neither the configuration
 * nor the environment names a provider.
 */
export async function openServedGateway(options: ServedGatewayOptions): Promise<ServedGateway | undefined> {
  const { config = {}, env, store, runtime } = options;
  const upstreams = config.upstreams ?? upstreamsFrom(env);
  if (Object.keys(upstreams).length === 0) return undefined;
  const tokens = new GatewayTokens(store.records);
  const runs = new GatewayRuns(tokens, runtime);
  const proof = new ServerProof();
  const gateway = await openAt(options, { ...config, upstreams }, runs, proof);
  const keys = Object.values(upstreams).map(({ apiKey }) => apiKey);
  const address = await tokens.announce(gateway.url, proof, keys);
  runtime.register(runs.resolver);
  return {
    url: gateway.url,
    desk: new GatewayDesk(tokens, { url: gateway.url, runs }),
    close: async () => {
      await address.close();
      await runs.close();
      await gateway.close();
    },
  };
}

/**
 * Opens the gateway at a port. If the person chose the port, it must be free. If the default port is occupied, the
 * gateway takes another one.
 */
async function openAt(
  { port, serverPort, onWarning }: ServedGatewayOptions,
  options: GatewayOptions,
  stored: GatewayRuns,
  proof: ServerProof,
): Promise<Gateway> {
  const place = { stored, prove: (nonce: string) => proof.answer(nonce) };
  if (port !== undefined)
    return Gateway.open(options, { ...place, port: portOption(port, "--gateway-port") });
  const next = serverPort === 0 || serverPort === 65_535 ? 0 : serverPort + 1;
  try {
    return await Gateway.open(options, { ...place, port: next });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    onWarning(`port ${next} is in use, so the gateway has another one; choose one with --gateway-port`);
    return Gateway.open(options, place);
  }
}

import { isIPv4 } from "node:net";
import {
  describeValue,
  Fault,
  type EngineFactory,
  is,
  optionTable,
  type OptionKinds,
} from "../../../kernel/index.ts";
import { defaultService } from "./admin.ts";
import { Endpoint } from "./endpoint.ts";
import { Ingress } from "./ingress.ts";
import { RestateEngine } from "./restate-engine.ts";

export { RestateAdmin, type Deployment, type Drained } from "./admin.ts";

/** Options of `restate`. Durations are milliseconds. */
export interface RestateOptions {
  /** URL of the ingress of Restate, such as `http://127.0.0.1:8080`. */
  readonly ingressUrl: string;
  /** Where this worker accepts invocations. If absent, the process executes no runs and only submits them. */
  readonly listen?: {
    /**
     * Address on which the worker listens. An address outside the loopback interface requires `identityKeys`.
     * Default: `127.0.0.1`.
     */
    readonly host?: string;
    /** Port on which the worker listens. With 0, the system chooses a port, which `onListen` receives. */
    readonly port: number;
  };
  /**
   * Public keys of the Restate server, such as `publickeyv1_...`. The server prints its key when it starts with a
   * private key. The worker then refuses requests that are not signed with one of these keys. Default: no keys, and
   * every request is accepted.
   */
  readonly identityKeys?: readonly string[];
  /** Called with the port when the worker accepts invocations, for example to register it with `RestateAdmin`. */
  readonly onListen?: (port: number) => Promise<void> | void;
  /**
   * Name of the virtual object in Restate. It must be the same for all workers that share a store and its agents.
   * Default: `reeve-runs`.
   */
  readonly service?: string;
  /** Time after which a slice starts no new call. The slice ends when its open calls have settled. Default: 30_000. */
  readonly sliceMs?: number;
  /**
   * Interval at which the worker looks for runs whose wake-up was lost between a commit and its wake-up, and sends
   * it again. Default: 30_000.
   */
  readonly sweepMs?: number;
  /**
   * Maximum time of a slice with its open calls. After this time, Restate lets another worker execute the run. It
   * must be longer than the longest call of a model or a tool. Default: 7_200_000.
   */
  readonly longestSliceMs?: number;
  /**
   * Whether `openRuntime` fails with `engine_unavailable` if the ingress cannot be reached. If `false`, the runtime
   * opens, and sends wake-ups when Restate answers. Default: `false`.
   */
  readonly isIngressRequired?: boolean;
}

const knownOptions = optionTable({
  ingressUrl: is.text(),
  listen: is.any,
  identityKeys: is.any,
  onListen: is.callback(),
  service: is.text(),
  sliceMs: is.number({ from: 1, finite: true, default: 30_000 }),
  sweepMs: is.number({ from: 1, finite: true, default: 30_000 }),
  longestSliceMs: is.number({ from: 1, finite: true, default: 7_200_000 }),
  isIngressRequired: is.boolean({ default: false }),
} satisfies OptionKinds<RestateOptions>);

/**
 * Creates the engine that lets a Restate server decide which worker executes a run and when. Pass it to `openRuntime` with
 * a store in SQLite or PostgreSQL, which keeps the journal, the money and the events.
 *
 * @example
 * ```ts
 * import { openRuntime } from "reeve";
 * import { restate } from "reeve/restate";
 *
 * const engine = restate({ ingressUrl: "http://127.0.0.1:8080", listen: { port: 9080 } });
 * const runtime = await openRuntime({ store: "sqlite:./reeve.db", engine });
 * ```
 */
export function restate(options: RestateOptions): EngineFactory {
  const {
    ingressUrl,
    listen,
    identityKeys = [],
    onListen,
    service = defaultService,
    sliceMs,
    sweepMs,
    longestSliceMs,
    isIngressRequired,
  } = knownOptions.read("restate()", options);
  if (!URL.canParse(ingressUrl) || !/^https?:$/u.test(new URL(ingressUrl).protocol))
    throw new Fault(
      "invalid_argument",
      `invalid ingressUrl ${describeValue(ingressUrl)} of restate(): expected the URL of the ingress of Restate, such as "http://127.0.0.1:8080"`,
    );
  checkEndpoint(listen?.host, identityKeys);
  return (port) =>
    new RestateEngine(port, {
      ingress: new Ingress(ingressUrl, service),
      endpoint:
        listen === undefined
          ? undefined
          : new Endpoint({ host: "127.0.0.1", ...listen, identityKeys, onListen, service, longestSliceMs }),
      sliceMs,
      sweepMs,
      isIngressRequired,
    });
}

/**
 * Throws for an endpoint that other machines can reach and that accepts every request, because a forged request
 * could execute runs.
 */
function checkEndpoint(host: string | undefined, identityKeys: readonly string[]): void {
  if (!Array.isArray(identityKeys) || identityKeys.some((key) => typeof key !== "string" || key === ""))
    throw new Fault(
      "invalid_argument",
      `invalid identityKeys ${describeValue(identityKeys)} of restate(): expected a list of public keys of Restate, such as ["publickeyv1_..."]`,
    );
  if (host === undefined || isLoopback(host) || identityKeys.length > 0) return;
  throw new Fault(
    "invalid_argument",
    `the endpoint for Restate cannot listen at ${host} without an identity key, because everyone who reaches it could execute runs; start Restate with request-identity-private-key-pem-file and pass the public key that it prints as identityKeys or --identity-key, or listen at 127.0.0.1`,
  );
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/** Rejects with `engine_unavailable` if the ingress of Restate does not answer in this time. Milliseconds. */
export function checkIngress(ingressUrl: string, timeoutMs: number): Promise<void> {
  return new Ingress(ingressUrl, defaultService).check(timeoutMs);
}

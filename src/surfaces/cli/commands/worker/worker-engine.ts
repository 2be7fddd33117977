import { checkChoice, Fault, type EngineFactory } from "../../../../kernel/index.ts";
import { portOption } from "../../terminal/number-option.ts";
import { numberOf } from "../../setup/settings-options.ts";
import type { WorkerLog } from "./worker-log.ts";

/** The options that choose an engine and give its address, as texts from the command line. */
export interface EngineAddressOptions {
  readonly engine: string;
  readonly ingressUrl?: string;
  readonly service?: string;
}

/** The options that choose and set up the engine of a worker. */
export interface EngineOptions extends EngineAddressOptions {
  readonly endpointPort?: string;
  readonly endpointHost?: string;
  readonly identityKey?: readonly string[];
  readonly slice?: string;
}

/** The engine of a worker, with a check whether the engine can work. */
export interface WorkerEngine {
  /** Creates the engine. `undefined` for the default engine of the runtime. */
  readonly factory?: EngineFactory;
  /** Rejects if the engine's server does not answer in this time, in milliseconds. */
  readonly check?: (timeoutMs: number) => Promise<void>;
}

/** The ingress address of a Restate server on this machine. */
const localIngress = "http://127.0.0.1:8080";

/** The options that only the Restate engine accepts, by the names of their flags. */
const restateFlags = {
  ingressUrl: "--ingress-url",
  endpointPort: "--endpoint-port",
  endpointHost: "--endpoint-host",
  identityKey: "--identity-key",
  service: "--service",
  slice: "--slice",
} as const satisfies Partial<Record<keyof EngineOptions, string>>;

/**
 * The engines of `reeve worker`, by the value of `--engine`. An engine that needs an optional package loads it only
 * when the engine is created.
 */
const engines = {
  local: async (options) => {
    refuseRestateFlags(options);
    return {};
  },
  restate: restateEngine,
} satisfies Record<string, (options: EngineOptions, log: WorkerLog) => Promise<WorkerEngine>>;

type EngineName = keyof typeof engines;

const engineNames = Object.keys(engines) as readonly EngineName[];

/** Returns the engine with this name. Throws `invalid_argument` if no such engine exists. */
export function engineOf(options: EngineOptions, log: WorkerLog): Promise<WorkerEngine> {
  checkChoice("reeve worker", "--engine", options.engine, engineNames);
  return engines[options.engine as EngineName](options, log);
}

/**
 * Returns the engine factory for a process that serves callers and executes no run. The engine sends the wake-ups
 * of the runs that callers start and change. `undefined` for the local engine, whose workers find these runs in the
 * store.
 */
export async function servingEngineOf(
  options: EngineAddressOptions & { readonly worker: boolean },
): Promise<EngineFactory | undefined> {
  const { engine, worker: isWorker, ingressUrl = localIngress, service } = options;
  checkChoice("reeve serve", "--engine", engine, engineNames);
  if (engine === "local") {
    refuseRestateFlags(options);
    return undefined;
  }
  if (isWorker)
    throw new Fault(
      "invalid_argument",
      "reeve serve executes no runs with the Restate engine; add --no-worker, and start workers with reeve worker --engine restate",
    );
  const { restate } = await import("../../../../assembly/restate.ts");
  return restate({ ingressUrl, ...(service !== undefined && { service }) });
}

function refuseRestateFlags(options: EngineOptions): void {
  for (const [name, flag] of Object.entries(restateFlags))
    if (options[name as keyof typeof restateFlags] !== undefined)
      throw new Fault("invalid_argument", `${flag} needs the Restate engine; add --engine restate`);
}

async function restateEngine(options: EngineOptions, log: WorkerLog): Promise<WorkerEngine> {
  const { checkIngress, restate } = await import("../../../../assembly/restate.ts");
  const { ingressUrl = localIngress, endpointHost: host = "127.0.0.1" } = options;
  const { service = "reeve-runs", identityKey: identityKeys = [] } = options;
  const slice = numberOf("--slice", options.slice, {});
  const factory = restate({
    ingressUrl,
    service,
    listen: { host, port: portOption(options.endpointPort ?? "9080", "--endpoint-port") },
    identityKeys,
    onListen: (port) =>
      log.write("info", "endpoint_opened", "Restate may invoke this worker", { host, port, service }),
    isIngressRequired: true,
    ...(slice !== undefined && { sliceMs: slice * 1_000 }),
  });
  return { factory, check: (timeoutMs) => checkIngress(ingressUrl, timeoutMs) };
}

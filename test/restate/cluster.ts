import { onTestFinished } from "vitest";
import type { EngineFactory } from "../../src/kernel/index.ts";
import { RestateAdmin, restate, type RestateOptions } from "../../src/runtime/engines/restate/index.ts";
import type { RestateEngine } from "../../src/runtime/engines/restate/restate-engine.ts";
import { Balancer } from "./balancer.ts";
import type { RestateServer } from "./server.ts";

let services = 0;

/** The workers of one test: a service of its own in a Restate server, behind a balancer. */
export interface Cluster {
  readonly service: string;
  readonly admin: RestateAdmin;
  /** Creates the engine of one worker. */
  readonly engine: EngineFactory;
  /** Number of times that the handler of the object of a run was executed by a worker, by the id of the run. */
  readonly handled: ReadonlyMap<string, number>;
  /** The ports of the workers, in the order in which they opened. */
  readonly ports: readonly number[];
  /** Ends the connections between Restate and the workers. */
  readonly cutConnections: () => void;
}

export async function newCluster(
  server: RestateServer,
  options: Partial<RestateOptions> = {},
): Promise<Cluster> {
  const balancer = await Balancer.open();
  onTestFinished(() => balancer.close());
  const admin = new RestateAdmin(server.adminUrl);
  const service = `runs-${process.pid}-${++services}`;
  const ports: number[] = [];
  const handled = new Map<string, number>();
  let deploying: Promise<string> | undefined;
  return {
    service,
    admin,
    ports,
    handled,
    cutConnections: () => balancer.cut(),
    engine: (port) => {
      const engine = restate({
        ingressUrl: server.ingressUrl,
        listen: { port: 0 },
        ...(server.identityKey !== undefined && { identityKeys: [server.identityKey] }),
        service,
        onListen: async (listening) => {
          ports.push(listening);
          balancer.add(listening);
          deploying ??= admin.deploy(balancer.uri);
          await deploying;
        },
        ...options,
      })(port) as RestateEngine;
      const slice = engine.slice.bind(engine);
      engine.slice = (each) => {
        handled.set(each.runId, (handled.get(each.runId) ?? 0) + 1);
        return slice(each);
      };
      return engine;
    },
  };
}

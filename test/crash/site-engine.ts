import { restate } from "../../src/assembly/restate.ts";
import type { EngineFactory } from "../../src/kernel/index.ts";

/** How a worker process reaches Restate, and how it is reached. */
export interface SiteAddress {
  readonly ingressUrl: string;
  readonly service: string;
  /** The worker sends its port here when it accepts invocations. */
  readonly registerUrl: string;
  readonly sliceMs?: number;
  /** The public key of Restate, if it signs its requests. */
  readonly identityKey?: string;
}

/** The Restate engine of a worker process that a test puts behind a balancer. */
export function siteEngine({
  ingressUrl,
  service,
  registerUrl,
  sliceMs = 30_000,
  identityKey,
}: SiteAddress): EngineFactory {
  return restate({
    ingressUrl,
    service,
    sliceMs,
    ...(identityKey !== undefined && { identityKeys: [identityKey] }),
    listen: { port: 0 },
    onListen: async (port) => {
      const response = await fetch(`${registerUrl}/${port}`, { method: "POST" });
      if (!response.ok) throw new Error(`the port was not registered: ${await response.text()}`);
    },
  });
}

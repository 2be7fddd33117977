import type { EngineFactory } from "../../src/kernel/index.ts";
import { crashSchema, crashSite } from "./crash-store.ts";
import { siteEngine, type SiteAddress } from "./site-engine.ts";

/** The engine that the environment asks for. */
export function crashEngine(): { readonly engine?: EngineFactory } {
  const site = process.env[crashSite];
  return site === undefined ? {} : { engine: siteEngine(JSON.parse(site) as SiteAddress) };
}

/** The engine of a worker of the crash harness. Each case has a service of its own, because the runs of all cases have the same ids. */
export function caseEngine(file: string): EngineFactory {
  const { service, registerUrl, ...address } = JSON.parse(process.env[crashSite] ?? "") as SiteAddress;
  const own = `${service}-${crashSchema(file)}`;
  return siteEngine({ ...address, service: own, registerUrl: `${registerUrl}/${own}` });
}

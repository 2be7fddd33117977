export * from "../testing/index.ts";
export {
  simulate,
  type SeenCommit,
  type SimulatedRun,
  type SimulateOptions,
  type SimulationClient,
  type SimulationEnd,
  type SimulationReport,
  type SimulationSite,
} from "../assembly/simulate.ts";
export type {} from "./kernel.ts";

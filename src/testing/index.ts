export {
  CountingServer,
  type Answering,
  type Bill,
  type CallBook,
  type ServedAnswer,
  type ServedCall,
} from "./counting-server.ts";
export {
  runCrashes,
  type BrokenPromise,
  type CrashOptions,
  type CrashReport,
  type Visitor,
} from "./crash-harness.ts";
export type { CrashPromise } from "./crash-promises.ts";
export { dyingStore, type Death, type DyingStore, type DyingStoreOptions } from "./dying-store.ts";
export { FakeClock, sequentialIds } from "./fake-clock.ts";
export { recordModel } from "./record-model.ts";
export { replayModel, type ReplayOptions } from "./replay-model.ts";
export { replaceAmbient } from "./simulation/ambient.ts";
export {
  FaultPlan,
  faultKinds,
  swarm,
  type FaultKind,
  type FaultRates,
  type InjectedFault,
} from "./simulation/fault-plan.ts";
export { Outside, type OutsideCall, type OutsideCallOptions } from "./simulation/outside.ts";
export { Scheduler, SimulatedProcess } from "./simulation/scheduler.ts";
export { SeededRandom } from "./simulation/seeded-random.ts";
export { traceRun, type RunTrace } from "./run-trace.ts";
export {
  ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  type ScriptStep,
} from "./scripted-model.ts";
export { callServer, servedModel, servedTool, type CallOptions, type ServerAddress } from "./served-call.ts";
export { runWorkerDuty, type WorkerDuty, type WorkerOrders } from "./worker-duty.ts";
export { WorkerProcess, type WorkerEnd } from "./worker-process.ts";

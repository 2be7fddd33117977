export type { Assertion, ContractHarness } from "./contract-harness.ts";
export { FakeClock } from "./fake-clock.ts";
export {
  ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  type ScriptStep,
} from "./scripted-model.ts";
export { sequentialIds } from "./sequential-ids.ts";
export { storeContracts } from "./store-contract.ts";

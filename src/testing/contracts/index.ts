export {
  channelAgent,
  channelContract,
  type ChannelHarness,
  type ChannelWorld,
  type HeardMessage,
  type SaidMessage,
} from "./channel-contract.ts";
export type { Assertion, ContractHarness } from "./contract-harness.ts";
export { engineContract } from "./engines/engine-contract.ts";
export type { EngineHarness, EngineRuntimeOptions } from "./engines/engine-world.ts";
export { memoryContract, type MemoryHarness } from "./memory-contract.ts";
export { storeContracts } from "./store-contract.ts";

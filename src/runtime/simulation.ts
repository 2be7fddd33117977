export { createRuntime } from "./local-runtime.ts";
export { sha256 } from "./process/sha256.ts";
export { SimulatedDatabase, type DatabaseAnswer, type DatabaseRequest } from "./stores/simulated/database.ts";
export {
  LostConnection,
  simulatedStore,
  type DatabaseLink,
  type SimulatedStore,
} from "./stores/simulated/store.ts";

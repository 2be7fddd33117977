export {
  openGateway,
  type Gateway,
  type GatewayAccess,
  type GatewayMeter,
  type GatewayOptions,
  type GatewayProgram,
  type GatewayProgramOptions,
} from "../capabilities/gateway/gateway.ts";
export type { GatewayUpstream } from "../capabilities/gateway/upstream.ts";
export type {
  AttemptContext,
  AttemptOptions,
  MeteredCall,
  MeteredRequest,
  MeteredResult,
} from "../kernel/index.ts";

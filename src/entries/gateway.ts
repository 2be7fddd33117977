export {
  openGateway,
  type Gateway,
  type GatewayAccess,
  type GatewayProgram,
  type GatewayProgramOptions,
} from "../capabilities/gateway/gateway.ts";
export type { GatewayOptions } from "../capabilities/gateway/gateway-options.ts";
export type { GatewayMeter } from "../capabilities/gateway/access.ts";
export type { GatewayUpstream } from "../capabilities/gateway/upstream.ts";
export type {
  AttemptContext,
  AttemptOptions,
  MeteredCall,
  MeteredRequest,
  MeteredResult,
} from "../kernel/index.ts";

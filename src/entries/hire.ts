export { hiredAgent, type HiredAgentOptions } from "../assembly/hired-agent.ts";
export { remoteAgent, type RemoteAgentOptions } from "../assembly/remote-agent.ts";
export type {} from "./kernel.ts";

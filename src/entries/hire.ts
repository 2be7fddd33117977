export { hiredAgent, type HiredAgentOptions } from "../assembly/hired-agent.ts";
export type {} from "./kernel.ts";

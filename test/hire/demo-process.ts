// The demo agent as a process: node test/hire/demo-process.ts
import { serveDemoAgent } from "../../src/capabilities/hire/demo-agent.ts";

await serveDemoAgent(process);

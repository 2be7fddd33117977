// The demo agent as a process: node test/hire/demo-process.ts
import * as sdk from "@agentclientprotocol/sdk";
import { runDemoAgent } from "../../src/capabilities/hire/demo-agent.ts";

await runDemoAgent(sdk, process);

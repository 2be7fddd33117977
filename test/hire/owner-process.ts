// Owns the run of a hired agent until it is killed: node owner-process.ts FILE UPSTREAM FOLDER PROMPT [SANDBOX] [HOST]
import { permissions } from "../../src/agents/index.ts";
import { hiredAgent } from "../../src/assembly/hired-agent.ts";
import { openRuntime } from "../../src/assembly/open-runtime.ts";
import { Gateway } from "../../src/capabilities/gateway/gateway.ts";
import type { SandboxMode, SandboxPolicy } from "../../src/capabilities/sandbox/sandbox-policy.ts";
import { openCrashStore } from "../crash/crash-store.ts";
import { agentFile } from "./agent-file.ts";

const [file = "", baseUrl = "", folder = "", prompt = "", policy = '"off"', host] = process.argv.slice(2);
const gateway = await Gateway.open({
  upstreams: { anthropic: { baseUrl, apiKey: "secret-key", provider: "mock" } },
});
const runtime = await openRuntime({
  store: await openCrashStore(file),
  prices: { find: () => ({ inputUsd: 0, outputUsd: 1e-3 }) },
  ...(host !== undefined && { host }),
});
const agent = hiredAgent({
  name: "coder",
  command: agentFile("demo-process"),
  gateway,
  folder,
  sandbox: JSON.parse(policy) as SandboxMode | SandboxPolicy,
  permissions: permissions({ mode: "bypass" }),
});
await (await runtime.submit(agent, prompt, { runId: "run_killed" })).result();

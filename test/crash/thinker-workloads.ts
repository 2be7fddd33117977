import { formatRunId } from "../../src/kernel/index.ts";
import { getRunContext } from "../../src/runtime/index.ts";
import { servedModel, servedTool, type ServerAddress } from "../../src/testing/served-call.ts";
import { architectureCases } from "../agents/architecture-cases/index.ts";
import { answerCall } from "../agents/architecture-cases/in-process-services.ts";
import type { ExternalServices, ArchitectureCase } from "../agents/architecture-cases/architecture-case.ts";
import { outputLimit, toolAnswer, type Workload } from "./workload.ts";

const runId = formatRunId("thinker");

/** Models and tools played by the counting server, which identifies the caller by the scope of the call. */
function servedOutside(server: ServerAddress): ExternalServices {
  return {
    model: (role) => ({
      ...servedModel(server, () => `${getRunContext()?.runId ?? ""} ${role}`),
      modelId: role,
      maxOutputTokens: outputLimit,
    }),
    tool: (name) => servedTool(server, name),
  };
}

function workloadOf({
  agent,
  input,
  reply,
  output,
  maxParallelCalls = 1,
  hasUnorderedEvents = false,
}: ArchitectureCase): Workload {
  return {
    agents: (server) => [agent(servedOutside(server))],
    drive: async ({ runtime, agent: root }) => {
      const run = await runtime.submit(root, input, { runId });
      await run.result();
      return [runId];
    },
    outputs: [output],
    world: {
      branches: maxParallelCalls,
      sideBySide: hasUnorderedEvents,
      answering: ({ name, key, body }) => {
        const [, role = ""] = key.split(" ");
        return name === "model" ? answerCall(reply, role, body) : toolAnswer(name, body);
      },
    },
  };
}

/** A workload for each architecture, run in a separate process. */
export const thinkerWorkloads: Readonly<Record<string, Workload>> = Object.fromEntries(
  Object.entries(architectureCases).map(([name, thinker]) => [name, workloadOf(thinker)]),
);

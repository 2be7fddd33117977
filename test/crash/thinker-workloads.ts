import { formatRunId } from "../../src/kernel/index.ts";
import { getRunContext } from "../../src/runtime/index.ts";
import { servedModel, servedTool, type ServerAddress } from "../../src/testing/served-call.ts";
import { thinkers } from "../agents/thinkers/index.ts";
import { answered } from "../agents/thinkers/outside.ts";
import type { Outside, Thinker } from "../agents/thinkers/thinker.ts";
import { outputLimit, toolAnswer, type Workload } from "./workload.ts";

const runId = formatRunId("thinker");

/** Played by the counting server, which knows by the scope of a call who asks. */
function servedOutside(server: ServerAddress): Outside {
  return {
    model: (role) => ({
      ...servedModel(server, () => `${getRunContext()?.runId ?? ""} ${role}`),
      modelId: role,
      maxOutputTokens: outputLimit,
    }),
    tool: (name) => servedTool(server, name),
  };
}

function workloadOf({ agent, input, says, output, branches = 1, sideBySide = false }: Thinker): Workload {
  return {
    agents: (server) => [agent(servedOutside(server))],
    drive: async ({ runtime, agent: root }) => {
      const run = await runtime.submit(root, input, { runId });
      await run.result();
      return [runId];
    },
    outputs: [output],
    world: {
      branches,
      sideBySide,
      answering: ({ name, key, body }) => {
        const [, role = ""] = key.split(" ");
        return name === "model" ? answered(says, role, body) : toolAnswer(name, body);
      },
    },
  };
}

/** Every way to think, in a process of its own. */
export const thinkerWorkloads: Readonly<Record<string, Workload>> = Object.fromEntries(
  Object.entries(thinkers).map(([name, thinker]) => [name, workloadOf(thinker)]),
);

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openRuntime } from "../../../src/assembly/open-runtime.ts";
import { recordRun } from "../../../src/experiments/recording/record-run.ts";
import { ReplayedAgents } from "../../../src/experiments/recording/replayed-agent.ts";
import { ReplayedCalls } from "../../../src/experiments/recording/replayed-calls.ts";
import {
  readRecording,
  writeRecording,
  type RecordedModelCall,
  type RunRecording,
} from "../../../src/experiments/recording/run-recording.ts";
import { userMessage, type HostedAgent, type JsonValue } from "../../../src/kernel/index.ts";
import { memoryStore } from "../../../src/runtime/index.ts";
import type { ArchitectureCase } from "../../agents/architecture-cases/architecture-case.ts";
import { InProcessServices } from "../../agents/architecture-cases/in-process-services.ts";
import { architectureCases } from "../../agents/architecture-cases/index.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-recording-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Replays a recording with an agent, and returns the result and the first difference. */
async function replay(agent: HostedAgent, recording: RunRecording) {
  const calls = new ReplayedCalls(recording, { tools: "recorded", model: "recorded" });
  const runtime = await openRuntime({
    store: memoryStore(),
    unknownPrice: "ignore",
    retry: { maxRetries: 0 },
  });
  const run = await runtime.submit(
    new ReplayedAgents(async () => calls).of(agent),
    recording.input as JsonValue,
  );
  const result = await run.result();
  await runtime.close();
  return { result, difference: calls.difference };
}

async function recorded({ agent, reply, input }: ArchitectureCase): Promise<RunRecording> {
  const store = memoryStore();
  const runtime = await openRuntime({ store, unknownPrice: "ignore" });
  const run = await runtime.submit(agent(new InProcessServices(reply)), input);
  await run.result();
  const { recording } = await recordRun(store, run.runId);
  await runtime.close();
  return recording;
}

/** Returns the recording that would exist if the model call at `step` had been made with another prompt. */
function withOtherPrompt(recording: RunRecording, step: number): RunRecording {
  const calls = recording.calls.map((call, index) => {
    if (index !== step || call.kind === "tool") return call;
    const { messages } = call.request;
    return { ...call, request: { ...call.request, messages: [...messages, userMessage("And the width?")] } };
  });
  return { ...recording, calls };
}

describe.each(Object.entries(architectureCases))("a stored run of %s", (name, architecture) => {
  test("a recorded run replays offline from its file, and a changed prompt is reported at its step", async () => {
    const file = join(folder, `${name}.json`);
    await writeRecording(file, await recorded(architecture));
    const recording = await readRecording(file);
    expect(recording.calls.length).toBeGreaterThan(0);

    const services = new InProcessServices(architecture.reply);
    const again = await replay(architecture.agent(services), recording);
    expect(again).toMatchObject({ difference: undefined });
    expect(again.result).toMatchObject({ status: "completed", output: architecture.output });

    const steps = [...recording.calls.keys()].filter((step) => recording.calls[step]?.kind === "model");
    for (const step of new Set([steps[0], steps.at(-1)])) {
      if (step === undefined) throw new Error(`${name} has called no model`);
      const { difference, result } = await replay(
        architecture.agent(services),
        withOtherPrompt(recording, step),
      );
      const { seq, agentId } = recording.calls[step] as RecordedModelCall;
      expect(difference).toMatchObject({ step: step + 1, seq });
      expect(result.status).toBe("failed");
      expect(result.error?.message).toContain(`at step ${step + 1} (event ${seq})`);
      expect(result.error?.message).toContain(`the model call of ${agentId}`);
      expect(result.error?.message).toContain("And the width?");
    }
    expect(services.calls).toEqual([]);
  });
});

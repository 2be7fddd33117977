import {
  checkList,
  Fault,
  type HostedAgent,
  type RunStatus,
  type WorkerInput,
} from "../../../kernel/index.ts";
import type { WorkerResult } from "../run-worker.ts";
import type { PromptContext } from "../../context/prompt-context.ts";
import { requestedOutput, workerBrief } from "../team-members.ts";
import { refuseDuplicateNames } from "../duplicate-names.ts";
import { checkAgent } from "../../base/part-check.ts";

/** An agent at its position in a flow. */
export interface FlowStep {
  /** The name of the step in events. It is the agent's name, with a number if the agent occurs again. */
  readonly name: string;
  readonly worker: HostedAgent;
}

/** Creates the steps of a flow. `what` names the option in errors. */
export function flowSteps(flow: string, what: string, workers: readonly HostedAgent[]): readonly FlowStep[] {
  checkList(`${what} of a ${flow} flow`, workers ?? {}, `use ${what}: [agent]`);
  for (const [index, worker] of workers.entries())
    checkAgent(`entry ${index + 1} of ${what} of a ${flow} flow`, worker);
  if (workers.length === 0)
    throw new Fault("invalid_argument", `invalid ${what} of a ${flow} flow: expected at least one agent`);
  refuseDuplicateNames(`a ${flow} flow`, workers);
  const seen = new Set<string>();
  const taken = new Set<string>(workers.map(({ id }) => id));
  return workers.map((worker) => {
    const { id } = worker;
    if (!seen.has(id)) {
      seen.add(id);
      return { name: id, worker };
    }
    let number = 2;
    while (taken.has(`${id}.${number}`)) number++;
    taken.add(`${id}.${number}`);
    return { name: `${id}.${number}`, worker };
  });
}

export function workersOf(steps: readonly FlowStep[]): Readonly<Record<string, HostedAgent>> {
  return Object.fromEntries(steps.map(({ name, worker }) => [name, worker]));
}

/** Returns the input of a step: a text, with the attachments of the flow's input if there are any. */
export function briefOf(prompt: string, question: PromptContext): WorkerInput {
  const { attachments, history, instructionsWithoutFormat } = question;
  const isPlain = attachments.length === 0 && history.length === 0 && instructionsWithoutFormat === "";
  return isPlain ? prompt : workerBrief({ ...question, prompt });
}

/** Adds the requested output schema to the brief of a step whose answer is the flow's answer. */
export function inFormWanted(brief: WorkerInput, question: PromptContext): WorkerInput {
  const form = requestedOutput(question);
  if (form.output === undefined) return brief;
  return { ...(typeof brief === "string" ? { prompt: brief } : brief), ...form };
}

export function endStatus(end: WorkerResult | undefined): RunStatus {
  if (end?.kind === "answered") return "completed";
  return end?.kind === "stopped" ? end.status : "failed";
}

/** Joins texts with a blank line between them. */
export function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join("\n\n");
}

import type { Event, LlmReply, StepRecord, TaskChange, TaskRecord, ToolCall } from "../../../kernel/index.ts";
import { contentOf, memberOf, messageOf, valueOf } from "./held-content.ts";
import { memberCount } from "./member-count.ts";
import { StepIndex } from "./step-index.ts";
import type { Reference } from "./stored-commit.ts";

/**
 * Whether two values are equal as JSON, with their members in the same order. A member that is `undefined` counts as
 * absent.
 */
function equalJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => equalJson(item, other[index]));
  }
  return equalMembers(one as Members, other as Members);
}

type Members = Readonly<Record<string, unknown>>;

function equalMembers(ones: Members, others: Members): boolean {
  const keys = Object.keys(others);
  let place = nextPresent(others, keys, 0);
  for (const key of Object.keys(ones)) {
    if (ones[key] === undefined) continue;
    if (keys[place] !== key || !equalJson(ones[key], others[key])) return false;
    place = nextPresent(others, keys, place + 1);
  }
  return place === keys.length;
}

function nextPresent(members: Members, keys: readonly string[], from: number): number {
  let place = from;
  while (place < keys.length && members[keys[place] ?? ""] === undefined) place++;
  return place;
}

/** The members of a model call's reply that a `message_end` event repeats. */
const replyMembers = ["message", "stopReason", "usage", "model"] as const;

/** The members of a new task that a `run_start` event repeats. */
const taskMembers = ["agentId", "input", "supervision", "metadata"] as const;

/** Maximum number of steps that are searched one by one. For a commit with more steps, an index is created. */
const mostSearchedSteps = 16;

/**
 * Maximum number of parts of a message that are searched one by one. For a longer message an index is created, so
 * that n calls cost O(n).
 */
const mostSearchedParts = 16;

/** The parts of a commit whose content is repeated in its events. */
export interface ContentHolders {
  readonly steps: readonly StepRecord[];
  readonly tasks: readonly TaskChange[];
}

/** Finds the content that events of a commit share with its steps and new tasks, so that the content is stored once. */
export class SharedContent {
  readonly #steps: readonly StepRecord[];
  readonly #tasks: readonly TaskChange[];
  readonly #index: StepIndex | undefined;
  readonly #places = new CallPlaces();

  constructor({ steps, tasks }: ContentHolders) {
    this.#steps = steps;
    this.#tasks = tasks;
    this.#index = steps.length > mostSearchedSteps ? new StepIndex(steps) : undefined;
  }

  /** Returns where the commit contains the event's content. `undefined` if no other part of the commit contains it. */
  referenceOf(event: Event): Reference | undefined {
    switch (event.type) {
      case "run_start":
        return referTask(event, this.#tasks);
      case "tool_execution_start":
        return referCall(event, this.#steps, this.#index?.find(event), this.#places);
      case "tool_execution_end":
        return referResult(event, this.#steps, this.#index?.find(event));
      case "message_end":
        return referReply(event, this.#steps, this.#index?.find(event));
      default:
        return undefined;
    }
  }
}

/** Returns the data of the event without the members that the reference covers. */
export function restOf({ type, data }: Event, [, ...members]: Reference): object | undefined {
  if (type === "tool_execution_start") return undefined;
  const held: readonly unknown[] = members.length === 0 ? repeatedBy(type) : members;
  const rest: Record<string, unknown> = {};
  for (const member in data) if (!held.includes(member)) rest[member] = data[member as keyof typeof data];
  return rest;
}

/** Returns the complete data of a stored event. The order of its members may differ from the original. */
export function restoreData(
  { type, data, from }: { readonly type: Event["type"]; readonly data?: object; readonly from: Reference },
  { steps, tasks }: ContentHolders,
): object {
  const [index, ...members] = from;
  const repeated = members.length === 0 ? repeatedBy(type) : members;
  if (type === "run_start") return Object.assign(pick(newTask(tasks, index), repeated), data);
  const step = steps[index];
  if (step === undefined)
    throw new SyntaxError(`an event refers to step ${index}, which the commit does not hold`);
  if (type === "tool_execution_start") return callAt(step, members[0]);
  if (type === "tool_execution_end") return { ...data, result: valueOf(step) };
  return Object.assign(pick(valueOf(step), repeated), data);
}

/** Returns the members that an event of this type repeats if its reference names none. */
function repeatedBy(type: Event["type"]): readonly string[] {
  if (type === "run_start") return taskMembers;
  return type === "tool_execution_end" ? ["result"] : replyMembers;
}

/** Returns a copy of the named members of an object. Absent members are left out. */
function pick(source: unknown, members: readonly (string | number)[]): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const member of members) {
    const value = (source as Readonly<Record<string, unknown>>)[member];
    if (value !== undefined) picked[member] = value;
  }
  return picked;
}

function newTask(tasks: readonly TaskChange[], index: number): TaskRecord {
  const change = tasks[index];
  if (change?.type !== "create")
    throw new SyntaxError(`an event refers to task change ${index}, which does not create a task`);
  return change.task;
}

/** Returns a reference to the task with which the run starts. */
function referTask(
  { taskId, data }: Event<"run_start">,
  tasks: readonly TaskChange[],
): Reference | undefined {
  const index = tasks.findIndex((change) => change.type === "create" && change.task.taskId === taskId);
  if (index < 0) return undefined;
  const task = newTask(tasks, index);
  const members = taskMembers.filter((member) => equalJson(task[member], data[member]));
  if (members.length === 0) return undefined;
  return members.length === taskMembers.length ? [index] : [index, ...members];
}

/** Returns a reference to the part of a model's message that contains this tool call. */
function referCall(
  { taskId, data }: Event<"tool_execution_start">,
  steps: readonly StepRecord[],
  only: number | undefined,
  places: CallPlaces,
): Reference | undefined {
  if (memberCount(data) !== 3) return undefined;
  let place = -1;
  const index = findStep(steps, only, (step) => {
    if (step.kind !== "llm" || step.taskId !== taskId) return false;
    place = places.find(step, data);
    return place >= 0;
  });
  return index < 0 ? undefined : [index, place];
}

/** Returns the index of the matching step, or -1. If `only` is given, only the step at that index is checked. */
function findStep(
  steps: readonly StepRecord[],
  only: number | undefined,
  isMeant: (step: StepRecord) => boolean,
): number {
  if (only === undefined) return steps.findIndex(isMeant);
  const step = steps[only];
  return step !== undefined && isMeant(step) ? only : -1;
}

function referResult(
  { taskId, data: { result } }: Event<"tool_execution_end">,
  steps: readonly StepRecord[],
  only: number | undefined,
): Reference | undefined {
  const index = findStep(
    steps,
    only,
    (step) => step.kind === "tool" && step.taskId === taskId && equalJson(valueOf(step), result),
  );
  return index < 0 ? undefined : [index];
}

function referReply(
  { taskId, data: whole }: Event<"message_end">,
  steps: readonly StepRecord[],
  only: number | undefined,
): Reference | undefined {
  const index = findStep(
    steps,
    only,
    (step) => step.kind === "llm" && step.taskId === taskId && equalJson(messageOf(step), whole.message),
  );
  const step = steps[index];
  if (step === undefined) return undefined;
  const { stopReason, usage, model } = valueOf(step) as Partial<LlmReply>;
  // The usual case: the event was built from the reply and shares all of its members.
  if (usage === whole.usage && stopReason === whole.stopReason && equalJson(model, whole.model))
    return [index];
  const members = replyMembers.filter(
    (member) => whole[member] !== undefined && equalJson(memberOf(step, member), whole[member]),
  );
  return [index, ...members];
}

function callAt(step: StepRecord, place: string | number | undefined): object {
  const part = typeof place === "number" ? contentOf(step)[place] : undefined;
  if (part?.type !== "tool_call")
    throw new SyntaxError(`an event refers to part ${place} of a message, which is not a tool call`);
  const { callId, toolName, input } = part;
  return { callId, toolName, input };
}

/** Finds tool calls in the messages of model calls. */
export class CallPlaces {
  /** For each model call with many parts, the position of each tool call, by its JSON text. */
  #byStep: Map<StepRecord, ReadonlyMap<string, number>> | undefined;

  /**
   * Returns the index of the part of the message that contains this tool call, or -1. If calls are equal, it
   * returns the first.
   */
  find(step: StepRecord, call: ToolCall): number {
    const content = contentOf(step);
    if (content.length > mostSearchedParts) return this.#placesIn(step).get(callText(call)) ?? -1;
    return content.findIndex(
      (part) =>
        part.type === "tool_call" &&
        part.callId === call.callId &&
        part.toolName === call.toolName &&
        equalJson(part.input, call.input),
    );
  }

  #placesIn(step: StepRecord): ReadonlyMap<string, number> {
    const known = this.#byStep?.get(step);
    if (known !== undefined) return known;
    const places = new Map<string, number>();
    for (const [place, part] of [...contentOf(step).entries()].toReversed())
      if (part.type === "tool_call") places.set(callText(part), place);
    (this.#byStep ??= new Map()).set(step, places);
    return places;
  }
}

function callText({ callId, toolName, input }: ToolCall): string {
  return JSON.stringify([callId, toolName, input]);
}

import {
  Fault,
  systemMessage,
  type ChatMessage,
  type ChatMiddleware,
  type DeltaFilter,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type StepAddress,
  type StepDigest,
} from "../../kernel/index.ts";
import { boundInput, type SentPrefix } from "./reservation.ts";
import { callThroughMiddleware } from "./chat-middleware.ts";
import type { CallbackFuture } from "../task/callback-future.ts";
import { readSources } from "./ephemeral-messages.ts";
import { Asking, Attempts, type Answer, type Outgoing } from "./model-attempts.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { Done } from "../task/step-result.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import { boundMessages } from "./token-bound.ts";

export type { SentPrefix } from "./reservation.ts";

/** A model call as a step of its task. */
export class ModelCall implements StepIdentity {
  readonly kind = "llm";
  readonly address: StepAddress;
  readonly request: LlmRequest;
  readonly role: string;
  /** Of the role. */
  readonly model: Model | undefined;
  readonly sent: SentPrefix | undefined;
  /** Whose count of input is that of the transcript as it stands: not known of what middleware made of a request. */
  countedBy: Model | undefined;

  constructor(
    address: StepAddress,
    request: LlmRequest,
    role: string,
    model: Model | undefined,
    sent: SentPrefix | undefined,
    countedBy: Model | undefined,
  ) {
    this.address = address;
    this.request = request;
    this.role = role;
    this.model = model;
    this.sent = sent;
    this.countedBy = countedBy;
  }

  get name(): string {
    return this.role;
  }

  get digest(): StepDigest {
    return this.request.transcript;
  }
}

/** One turn's model call, through what stands around it (F1). What it comes to is for the breath in which the step is recorded. */
export function callModel(
  open: ActiveStep,
  call: ModelCall,
): CallbackFuture<Done<LlmReply>> | Promise<Done<LlmReply>> {
  const { ephemeral } = call.request;
  const chat = open.runner.agent.callPath?.chat;
  if ((ephemeral !== undefined && ephemeral.length > 0) || chat !== undefined)
    return callWith(open, call, chat);
  return callPlain(open, call, nothing);
}

async function callWith(
  open: ActiveStep,
  call: ModelCall,
  chat: ChatMiddleware | undefined,
): Promise<Done<LlmReply>> {
  const { request, role } = call;
  const { ephemeral = [] } = request;
  const shown =
    ephemeral.length === 0 ? nothing : await open.runner.activity.whileAlive(readSources(open, ephemeral));
  if (chat === undefined) return callPlain(open, call, shown).come();
  const model = findModel(open.runner, call);
  const whole = modelRequest(request, shown);
  const inputTokens = (by: Model): number => boundShown(call, shown, by);
  const { settle, countedBy } = await callThroughMiddleware(chat, {
    open,
    model,
    whole,
    inputTokens,
    request,
    role,
  });
  call.countedBy = countedBy;
  return settle;
}

function callPlain(open: ActiveStep, call: ModelCall, shown: readonly ChatMessage[]): Asking {
  return new Asking(open, new PlainCall(open, call, shown), new Attempts());
}

/** A call with nothing around it. */
class PlainCall implements Outgoing {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly role: string;
  readonly filters = noFilters;
  readonly #call: ModelCall;
  readonly #shown: readonly ChatMessage[];

  constructor(open: ActiveStep, call: ModelCall, shown: readonly ChatMessage[]) {
    this.model = findModel(open.runner, call);
    this.request = modelRequest(call.request, shown);
    this.role = call.role;
    this.#call = call;
    this.#shown = shown;
  }

  inputTokens(by: Model): number {
    return boundShown(this.#call, this.#shown, by);
  }

  answered({ model }: Answer): void {
    this.#call.countedBy = model;
  }
}

function boundShown({ request, sent }: ModelCall, shown: readonly ChatMessage[], by: Model): number {
  const bound = boundInput(request, sent, by);
  return shown.length === 0 ? bound : bound + boundMessages(shown);
}

const noFilters: readonly DeltaFilter[] = [];
const nothing: readonly ChatMessage[] = [];

function findModel(runner: TaskRunner, { model, role }: ModelCall): Model {
  if (model !== undefined) return model;
  const known = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${known || "none"}`,
  );
}

function modelRequest(request: LlmRequest, shown: readonly ChatMessage[]): ModelRequest {
  const { transcript, instructions = "" } = request;
  const said = instructions === "" ? transcript.slice() : transcript.precededBy(systemMessage(instructions));
  const messages = shown.length === 0 ? said : [...said, ...shown];
  const { tools, toolChoice, responseFormat, maxOutputTokens, temperature, stopSequences, providerOptions } =
    request;
  const asked: { -readonly [Key in keyof ModelRequest]: ModelRequest[Key] } =
    tools === undefined ? { messages } : { messages, tools };
  // One by one: most have none of them.
  if (toolChoice !== undefined) asked.toolChoice = toolChoice;
  if (responseFormat !== undefined) asked.responseFormat = responseFormat;
  if (maxOutputTokens !== undefined) asked.maxOutputTokens = maxOutputTokens;
  if (temperature !== undefined) asked.temperature = temperature;
  if (stopSequences !== undefined) asked.stopSequences = stopSequences;
  if (providerOptions !== undefined) asked.providerOptions = providerOptions;
  return asked;
}

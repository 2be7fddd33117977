import {
  Fault,
  samplingNames,
  systemMessage,
  type ChatMessage,
  type ChatMiddleware,
  type DeltaFilter,
  type EphemeralSource,
  type EventDraft,
  type LlmReply,
  type LlmRequest,
  type Model,
  type ModelRequest,
  type StepAddress,
  type StepDigest,
  callSettingKinds,
  describeValue,
  is,
  optionTable,
  type OptionKinds,
  readProperty,
} from "../../kernel/index.ts";
import type { StepIdentity } from "../journal/step-identity.ts";
import type { ActiveStep } from "../task/active-step.ts";
import type { TaskRunner } from "../task/task-runner.ts";
import { callThroughMiddleware } from "./chat-middleware.ts";
import { AttemptCount, ModelAttempts, type OutgoingRequest } from "./model-attempts.ts";
import { countingModel, type PendingReply } from "./settle-reply.ts";
import { recordRequest } from "./sent-request.ts";
import { boundInput, type SentPrefix } from "./token-bound.ts";
import { modelName } from "./model-name.ts";

/** A model call as a step of its task. */
export class ModelCall implements StepIdentity {
  readonly kind = "llm";
  readonly address: StepAddress;
  readonly request: LlmRequest;
  readonly role: string;
  /** The agent's model for the role. */
  readonly model: Model | undefined;
  readonly sent: SentPrefix | undefined;
  /**
   * The model whose reported input tokens are the size of the transcript. `undefined` if this is unknown, because
   * middleware or a choice of models took part.
   */
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

/** Creates `message_start` events. All calls with the same role and model share one event draft. */
export class MessageStarts {
  readonly #runner: TaskRunner;
  #last: { readonly role: string; readonly model: Model | undefined; readonly draft: EventDraft } | undefined;

  constructor(runner: TaskRunner) {
    this.#runner = runner;
  }

  get(role: string, model: Model | undefined): EventDraft {
    if (this.#last?.role === role && this.#last.model === model) return this.#last.draft;
    const name = model && { model: modelName(this.#runner.agentId, model).name };
    const modelRole = role === "main" ? undefined : { modelRole: role };
    const data = Object.freeze({ role: "assistant", attempt: 1, ...name, ...modelRole } as const);
    const draft: EventDraft = { type: "message_start", data };
    this.#last = { role, model, draft };
    return draft;
  }
}

/**
 * Returns what is wrong with the request of `ctx.llm`. `undefined` if it has a transcript. It compares the form and
 * not the class, because an agent may come from another copy of this package.
 */
export function requestProblem(request: unknown): Fault | undefined {
  const transcript = readProperty(request, "transcript");
  if (typeof readProperty(transcript, "append") === "function") return undefined;
  return new Fault(
    "invalid_argument",
    `invalid transcript ${describeValue(transcript)} of ctx.llm(): expected a Transcript; use ctx.llm({ transcript: Transcript.of(messages) })`,
  );
}

/**
 * Option table of a request. Unknown options throw, because a misspelt limit of a request would not reach the
 * model.
 */
const llmTable = optionTable({
  ...callSettingKinds,
  transcript: is.any,
  instructions: is.text(),
  ephemeral: is.list(),
  role: is.text(),
  tools: is.list(),
  responseFormat: is.any,
  stopSequences: is.list(),
  thinkingLevel: is.any,
  providerOptions: is.any,
} satisfies OptionKinds<LlmRequest>);

/**
 * Calls the model of a step, through middleware if the agent has any (F1). The returned function settles the result
 * when the step is recorded.
 */
export function callModel(step: ActiveStep, call: ModelCall): Promise<() => LlmReply> {
  llmTable.read("ctx.llm()", call.request);
  const { ephemeral } = call.request;
  const chat = step.runner.agent.callPath?.model?.around;
  if ((ephemeral !== undefined && ephemeral.length > 0) || chat !== undefined)
    return callWith(step, call, chat);
  return callDirectly(step, call, noMessages);
}

/** Reads the ephemeral messages first, then calls the model through `chat` if it is given. */
async function callWith(
  step: ActiveStep,
  call: ModelCall,
  chat: ChatMiddleware | undefined,
): Promise<() => LlmReply> {
  const { request, role } = call;
  const { ephemeral = [] } = request;
  const messages =
    ephemeral.length === 0
      ? noMessages
      : await step.runner.activity.whileAlive(readEphemeral(step, ephemeral));
  if (chat === undefined) return callDirectly(step, call, messages);
  const { settle, countedBy } = await callThroughMiddleware(chat, {
    step,
    model: requireModel(step.runner, call),
    request,
    modelRequest: modelRequest(request, messages),
    inputTokens: (model) => boundCall(call, messages, model),
    ephemeralMessages: messages.length,
    role,
    record: (changed) => recordRequest(step, call, messages.length, changed),
  });
  call.countedBy = countedBy;
  return settle;
}

/**
 * Returns the messages of the sources, in order. S4: if a source throws, the error is recorded, and the call
 * continues without its messages.
 */
async function readEphemeral(
  step: ActiveStep,
  sources: readonly EphemeralSource[],
): Promise<readonly ChatMessage[]> {
  const messages = await Promise.all(
    sources.map(async (source) => {
      try {
        return await source.messages();
      } catch (error) {
        const failure = Fault.from(error).toJSON();
        step.emit({ type: "hook_error", data: { hook: source.name, failure } });
        return [];
      }
    }),
  );
  return messages.flat();
}

function callDirectly(
  step: ActiveStep,
  call: ModelCall,
  ephemeral: readonly ChatMessage[],
): Promise<() => LlmReply> {
  const request = new DirectRequest(step, call, ephemeral);
  recordRequest(step, call, ephemeral.length);
  return new ModelAttempts(step, request, new AttemptCount()).run().then(settlingOf);
}

function settlingOf(reply: PendingReply): () => LlmReply {
  return () => reply.settle();
}

/** A request that goes to the model without middleware. */
class DirectRequest implements OutgoingRequest {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly role: string;
  readonly filters = noFilters;
  readonly #call: ModelCall;
  readonly #ephemeral: readonly ChatMessage[];

  constructor(step: ActiveStep, call: ModelCall, ephemeral: readonly ChatMessage[]) {
    this.model = requireModel(step.runner, call);
    this.request = modelRequest(call.request, ephemeral);
    this.role = call.role;
    this.#call = call;
    this.#ephemeral = ephemeral;
  }

  get ephemeralMessages(): number {
    return this.#ephemeral.length;
  }

  inputTokens(model: Model): number {
    return boundCall(this.#call, this.#ephemeral, model);
  }

  onReply(reply: PendingReply): void {
    this.#call.countedBy = countingModel(reply);
  }
}

/** B1: returns an upper bound of the input tokens of a call with its ephemeral messages. */
function boundCall({ request, sent }: ModelCall, ephemeral: readonly ChatMessage[], model: Model): number {
  return boundInput(request, sent, model, ephemeral);
}

const noFilters: readonly DeltaFilter[] = [];
const noMessages: readonly ChatMessage[] = [];

function requireModel(runner: TaskRunner, { model, role }: ModelCall): Model {
  if (model !== undefined) return model;
  const roles = Object.keys(runner.agent.models ?? {}).join(", ");
  throw new Fault(
    "invalid_argument",
    `agent ${runner.agentId} has no model for the role ${role}; it has: ${roles || "none"}`,
  );
}

function modelRequest(request: LlmRequest, ephemeral: readonly ChatMessage[]): ModelRequest {
  const { transcript, instructions = "" } = request;
  const durable =
    instructions === "" ? transcript.slice() : transcript.precededBy(systemMessage(instructions));
  const messages = ephemeral.length === 0 ? durable : [...durable, ...ephemeral];
  const {
    tools,
    toolChoice,
    responseFormat,
    maxOutputTokens,
    stopSequences,
    thinkingLevel,
    providerOptions,
  } = request;
  const result: { -readonly [Key in keyof ModelRequest]: ModelRequest[Key] } =
    tools === undefined ? { messages } : { messages, tools };
  // Assigned one by one, because most requests have none of them.
  if (toolChoice !== undefined) result.toolChoice = toolChoice;
  if (responseFormat !== undefined) result.responseFormat = responseFormat;
  if (maxOutputTokens !== undefined) result.maxOutputTokens = maxOutputTokens;
  for (const name of samplingNames) if (request[name] !== undefined) result[name] = request[name];
  if (stopSequences !== undefined) result.stopSequences = stopSequences;
  if (thinkingLevel !== undefined) result.thinkingLevel = thinkingLevel;
  if (providerOptions !== undefined) result.providerOptions = providerOptions;
  return result;
}

import {
  canonicalJson,
  describeDifference,
  Fault,
  jsonDifference,
  readProperty,
  type AssistantMessage,
  type JsonValue,
  type ModelRequest,
} from "../../kernel/index.ts";
import { sha256Hex } from "../../runtime/index.ts";
import type { ModelMode, ToolMode } from "../contract.ts";
import { Redaction } from "./redaction.ts";
import type { RecordedModelCall, RecordedToolCall, RunRecording } from "./run-recording.ts";

/** How the calls of a case are answered. */
export interface ReplayModes {
  readonly tools: ToolMode;
  readonly model: ModelMode;
}

/** What one call of a replay asks. */
interface Asked {
  readonly agentId: string;
}

/** The first call of a replay that the record does not contain. */
export interface ReplayDifference {
  /** Number of the model call or tool call in the order of the recorded run, starting at 1. */
  readonly step: number;
  /** Sequence number of the call's event in the recorded run. `null` if the record contained no more calls. */
  readonly seq: number | null;
  readonly message: string;
}

/**
 * The record of one run, from which the calls of one replay are answered. Each recorded call answers one equal call: the
 * k-th equal call gets the k-th recorded answer. After the first difference no further call is answered.
 */
export class ReplayedCalls {
  readonly modes: ReplayModes;
  readonly #runId: string;
  readonly #redaction: Redaction;
  readonly #models: LeftCall<RecordedModelCall>[];
  readonly #tools: LeftCall<RecordedToolCall>[];
  #difference: ReplayDifference | undefined;

  constructor(recording: RunRecording, modes: ReplayModes) {
    this.modes = modes;
    this.#runId = recording.runId;
    this.#redaction = new Redaction(recording.secrets);
    const numbered = recording.calls.map((call, index) => ({ call, step: index + 1 }));
    this.#models = numbered.flatMap(({ call, step }) =>
      call.kind === "model" && modes.model === "recorded"
        ? [{ call, step, key: this.#modelKey(call, call.request) }]
        : [],
    );
    this.#tools = numbered.flatMap(({ call, step }) =>
      call.kind === "tool" && modes.tools !== "live"
        ? [{ call, step, key: this.#toolKey(call.toolName, call.input) }]
        : [],
    );
  }

  /** The first difference. `undefined` if all calls so far were recorded. */
  get difference(): ReplayDifference | undefined {
    return this.#difference;
  }

  /** Returns the recorded call that answers a model call. Throws `invalid_argument` at the first difference. */
  takeModel({
    agentId,
    role,
    request,
  }: Asked & Pick<RecordedModelCall, "role" | "request">): RecordedModelCall {
    this.#refuseAfterDifference();
    // The key of a long request is made once, and not for each recorded call.
    const keys = new Map<number, string>();
    const keyWithout = (ephemeral: number): string => {
      const known = keys.get(ephemeral);
      if (known !== undefined) return known;
      const made = this.#modelKey({ agentId, role }, withoutEphemeral(request, ephemeral));
      keys.set(ephemeral, made);
      return made;
    };
    const found = this.#models.find(
      ({ call, key }) => call.agentId === agentId && call.role === role && key === keyWithout(call.ephemeral),
    );
    if (found === undefined) throw this.#differs(this.#missedModel(agentId, role, request));
    this.#models.splice(this.#models.indexOf(found), 1);
    return found.call;
  }

  /**
   * Returns the recorded call that answers a tool call. `undefined` if there is none and the mode allows a live
   * call. Otherwise throws `invalid_argument` at the first difference.
   */
  takeTool(agentId: string, toolName: string, input: JsonValue): RecordedToolCall | undefined {
    this.#refuseAfterDifference();
    const key = this.#toolKey(toolName, input);
    const at = this.#tools.findIndex((each) => each.key === key);
    const [found] = at < 0 ? [] : this.#tools.splice(at, 1);
    if (found !== undefined) return found.call;
    if (this.modes.tools === "recorded-or-live") return undefined;
    throw this.#differs(this.#missedTool(agentId, toolName, input));
  }

  /** Notes that an earlier process has answered a tool call. */
  skipTool(toolName: string, input: JsonValue): void {
    const key = this.#toolKey(toolName, input);
    const at = this.#tools.findIndex((each) => each.key === key);
    if (at >= 0) this.#tools.splice(at, 1);
  }

  /** Notes that an earlier process has answered a model call with this message. */
  skipModel(agentId: string, role: string, message: AssistantMessage): void {
    const text = canonicalJson(message);
    const at = this.#models.findIndex(
      ({ call }) =>
        call.agentId === agentId && call.role === role && canonicalJson(call.reply?.message ?? null) === text,
    );
    if (at >= 0) this.#models.splice(at, 1);
  }

  #toolKey(toolName: string, input: JsonValue): string {
    return `${toolName} ${canonicalJson(this.#redaction.inArguments(toolName, input))}`;
  }

  /** A digest, because the requests of a long run repeat their messages. */
  #modelKey({ agentId, role }: Asked & Pick<RecordedModelCall, "role">, request: ModelRequest): string {
    return sha256Hex(`${agentId} ${role} ${canonicalJson(this.#redaction.in(comparable(request)))}`);
  }

  #missedModel(agentId: string, role: string, request: ModelRequest): ReplayDifference {
    const asked = `the model call of ${agentId}${role === "main" ? "" : ` in the role ${role}`}`;
    const own = this.#models.filter(({ call }) => call.agentId === agentId && call.role === role);
    const compared = own.map(({ step, call }) => {
      const recorded = this.#redaction.in(comparable(call.request));
      const now = this.#redaction.in(comparable(withoutEphemeral(request, call.ephemeral)));
      return {
        step,
        call,
        found: jsonDifference(recorded, now, "request"),
        equal: equalMessages(recorded, now),
      };
    });
    // Of several requests that resemble this one equally, the first is the one that was due.
    const nearest = compared.reduce<(typeof compared)[number] | undefined>(
      (best, each) => (best === undefined || each.equal > best.equal ? each : best),
      undefined,
    );
    if (nearest?.found === undefined) return this.#unexpected(asked);
    const { step, call, found } = nearest;
    const { seq } = call;
    return { step, seq, message: `${asked} differs at ${describeDifference(found)}` };
  }

  #missedTool(agentId: string, toolName: string, input: JsonValue): ReplayDifference {
    const asked = `the call of the tool ${toolName} by ${agentId}`;
    const nearest = this.#tools.find(({ call }) => call.toolName === toolName);
    const given = this.#redaction.inArguments(toolName, input);
    if (nearest === undefined) return this.#unexpected(`${asked} with ${shortened(given)}`);
    const { step, call } = nearest;
    const found = jsonDifference(this.#redaction.inArguments(toolName, call.input), given, "arguments");
    const where = found === undefined ? "nothing" : describeDifference(found);
    return { step, seq: call.seq, message: `${asked} differs at ${where}` };
  }

  /**
   * Returns the difference for a call to which no recorded call is similar. Its step is the step of the first
   * unused call.
   */
  #unexpected(asked: string): ReplayDifference {
    const [next] = [...this.#models, ...this.#tools].toSorted((one, other) => one.step - other.step);
    if (next === undefined)
      return {
        step: 0,
        seq: null,
        message: `${asked} was not recorded: all recorded calls have been replayed`,
      };
    const { call, step } = next;
    const recorded =
      call.kind === "tool"
        ? `the call of the tool ${call.toolName} by ${call.agentId}`
        : `the model call of ${call.agentId}`;
    return { step, seq: call.seq, message: `recorded ${recorded}, asked ${asked}` };
  }

  #differs(difference: ReplayDifference): Fault {
    this.#difference = difference;
    return this.fault(difference);
  }

  /** The error of a difference, with which the replay ends. */
  fault({ step, seq, message }: ReplayDifference): Fault {
    const place = seq === null ? "after its last step" : `at step ${step} (event ${seq})`;
    return new Fault(
      "invalid_argument",
      `the replay of ${this.#runId} differs ${place}: ${message}; record the case again if the change is intended`,
      { details: { replayOf: this.#runId, step, seq } },
    );
  }

  #refuseAfterDifference(): void {
    if (this.#difference !== undefined) throw this.fault(this.#difference);
  }
}

interface LeftCall<Call> {
  readonly call: Call;
  readonly step: number;
  readonly key: string;
}

/** The part of a request that a replay compares: what the model sees, and the settings. */
function comparable({ messages, tools, ...settings }: ModelRequest): JsonValue {
  const specs = tools?.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
  const value = { messages, ...(specs !== undefined && specs.length > 0 && { tools: specs }), ...settings };
  // Members that are `undefined` are not recorded.
  return JSON.parse(JSON.stringify(value)) as JsonValue;
}

/** Number of equal messages with which two requests begin. */
function equalMessages(one: JsonValue, other: JsonValue): number {
  const [left, right] = [one, other].map((each) => readProperty(each, "messages") as readonly JsonValue[]);
  const end = (left ?? []).findIndex(
    (message, index) => canonicalJson(message) !== canonicalJson(right?.[index] ?? null),
  );
  return end < 0 ? (left ?? []).length : end;
}

function withoutEphemeral(request: ModelRequest, count: number): ModelRequest {
  return count === 0 ? request : { ...request, messages: request.messages.slice(0, -count) };
}

function shortened(input: JsonValue): string {
  const text = JSON.stringify(input);
  return text.length > 120 ? `${text.slice(0, 120)}...` : text;
}

import {
  answerParts,
  endText,
  type AnswerEnd,
  type AnswerPart,
  type FollowAnswerOptions,
} from "../../../agents/index.ts";
import type {
  Delta,
  Event,
  FilePart,
  JsonObject,
  JsonValue,
  RunHandle,
  RunStatus,
  UserPart,
} from "../../../kernel/index.ts";
import { questionParts } from "./a2a-message.ts";
import type {
  TaskState,
  WireArtifact,
  WireMessage,
  WirePart,
  WireStatus,
  WireTask,
  WireUpdate,
} from "./a2a-schema.ts";

/** The state of a task whose run has ended. */
export const endedStates: { readonly [Status in RunStatus]: TaskState } = {
  completed: "TASK_STATE_COMPLETED",
  cancelled: "TASK_STATE_CANCELED",
  guardrail_tripped: "TASK_STATE_REJECTED",
  max_turns: "TASK_STATE_FAILED",
  max_output: "TASK_STATE_FAILED",
  budget_exhausted: "TASK_STATE_FAILED",
  deadline_exceeded: "TASK_STATE_FAILED",
  paused: "TASK_STATE_FAILED",
  failed: "TASK_STATE_FAILED",
};

/** The artifact that holds the answer. */
const answerId = "answer";

/**
 * A task of A2A, which is a run. It is read from the log of the run, so that every reader sees the same task at the same
 * event, also after a crash. The artifact `answer` is the text of the last message while the run works, and its output at
 * the end. Each file of an answer is an artifact.
 */
export class TaskView {
  readonly #run: RunHandle;
  readonly #contextId: string;
  /** Seq of the first event that the view does not contain. */
  #next = 0;
  /** Time of the last event of the view. */
  #at = 0;
  #state: TaskState = "TASK_STATE_SUBMITTED";
  #asks: readonly WirePart[] = [];
  #ending: AnswerEnd | undefined;
  #messageId: string | undefined;
  #text = "";
  #output: readonly WirePart[] | undefined;
  readonly #files: WireArtifact[] = [];
  readonly #history: WireMessage[] = [];

  /** `contextId` is the context of the task, as the caller names it. */
  constructor(run: RunHandle, contextId: string) {
    this.#run = run;
    this.#contextId = contextId;
  }

  /** Reads a task as it is now. `waitsFromSeq` is that of `followAnswer`. Costs O(events of the run). */
  static async read(run: RunHandle, contextId: string, waitsFromSeq = 0): Promise<TaskView> {
    const view = new TaskView(run, contextId);
    for await (const part of answerParts(run, view.#noting(run.events({ follow: false })), { waitsFromSeq }))
      view.#apply(part);
    return view;
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined;
  }

  /** Whether the task works, so that it changes without a message of the client. */
  get isWorking(): boolean {
    return !this.hasEnded && this.#state !== "TASK_STATE_INPUT_REQUIRED";
  }

  /** Yields what changes from here on, until the task ends or asks. The view changes with it. */
  async *follow(
    options: Pick<FollowAnswerOptions, "signal" | "waitsFromSeq"> = {},
  ): AsyncGenerator<WireUpdate, void, undefined> {
    if (!this.isWorking) return;
    const { signal, ...more } = options;
    const events = this.#noting(this.#run.events(signal === undefined ? {} : { signal }));
    for await (const part of answerParts(this.#run, events, { ...more, fromSeq: this.#next }))
      yield* this.#apply(part);
  }

  /** The task on the wire. `historyLength`: number of the last messages that it contains. Default: all. */
  task({ historyLength }: { readonly historyLength?: number } = {}): WireTask {
    const history = historyLength === undefined ? this.#history : this.#history.slice(-historyLength);
    const hasHistory = historyLength !== 0 && history.length > 0;
    const artifacts = this.#artifacts;
    return {
      id: this.#run.runId,
      contextId: this.#contextId,
      status: this.#status,
      ...(artifacts.length > 0 && { artifacts }),
      ...(hasHistory && { history }),
      metadata: this.#metadata,
    };
  }

  /** Notes what the view needs of the events besides the parts of the answer. */
  async *#noting(items: AsyncIterable<Event | Delta>): AsyncGenerator<Event | Delta, void, undefined> {
    const from = this.#next;
    for await (const item of items) {
      if ("seq" in item && item.seq >= from) this.#note(item);
      yield item;
    }
  }

  #note(event: Event): void {
    this.#next = event.seq + 1;
    this.#at = event.at;
    if (event.type === "run_end") return;
    if (!this.hasEnded && this.#state === "TASK_STATE_SUBMITTED") this.#state = "TASK_STATE_WORKING";
    if (event.erased === true) return;
    if (event.type === "run_start")
      this.#say(
        "ROLE_USER",
        idIn(event.data.metadata) ?? `${event.runId}:${event.seq}`,
        wireParts(event.data.input),
      );
    if (event.type === "run_steer")
      this.#say(
        "ROLE_USER",
        event.data.inputId ?? `${event.runId}:${event.seq}`,
        wireParts(event.data.input),
      );
  }

  #apply(part: AnswerPart): readonly WireUpdate[] {
    switch (part.type) {
      case "text":
        return part.isAnswer ? this.#addText(part.messageId, part.text) : [];
      case "message_reset":
        if (part.messageId === this.#messageId) this.#messageId = undefined;
        return [];
      case "file":
        return part.isAnswer ? this.#addFile(part.file) : [];
      case "question":
        this.#say("ROLE_AGENT", part.questionId, questionParts([part]));
        return [];
      case "waiting":
        this.#state = "TASK_STATE_INPUT_REQUIRED";
        this.#asks = questionParts(
          part.questions.map((request) => ({ questionId: request.questionId, request })),
        );
        return [this.#statusUpdate()];
      case "end":
        return this.#end(part);
      default:
        return [];
    }
  }

  #addText(messageId: string, text: string): readonly WireUpdate[] {
    const append = messageId === this.#messageId;
    this.#messageId = messageId;
    this.#text = append ? this.#text + text : text;
    return [this.#artifactUpdate(answerArtifact([{ text }]), append)];
  }

  #addFile({ mediaType, source, filename }: FilePart): readonly WireUpdate[] {
    const content = source.kind === "url" ? { url: source.url } : { raw: source.data };
    const part = { ...content, mediaType, ...(filename !== undefined && { filename }) };
    const name = filename ?? `file-${this.#files.length + 1}`;
    const artifact = { artifactId: `file-${this.#files.length + 1}`, name, parts: [part] };
    this.#files.push(artifact);
    return [this.#artifactUpdate(artifact, false)];
  }

  #end(end: AnswerEnd): readonly WireUpdate[] {
    this.#ending = end;
    this.#state = endedStates[end.status];
    const { output } = end;
    const isSaid = output === null || output === "" || output === this.#text;
    if (!isSaid) this.#output = [typeof output === "string" ? { text: output } : { data: output }];
    const changed =
      this.#output === undefined ? [] : [this.#artifactUpdate(answerArtifact(this.#output), false)];
    return [...changed, this.#statusUpdate()];
  }

  #say(role: WireMessage["role"], messageId: string, parts: readonly WirePart[]): void {
    if (parts.length > 0) this.#history.push({ ...this.#place, messageId, role, parts });
  }

  get #place(): { readonly taskId: string; readonly contextId: string } {
    return { taskId: this.#run.runId, contextId: this.#contextId };
  }

  get #artifacts(): readonly WireArtifact[] {
    const parts = this.#output ?? (this.#text === "" ? [] : [{ text: this.#text }]);
    return parts.length === 0 ? this.#files : [answerArtifact(parts), ...this.#files];
  }

  get #status(): WireStatus {
    const parts = this.#statusParts;
    const messageId = `${this.#run.runId}:status-${this.#next}`;
    return {
      state: this.#state,
      timestamp: new Date(this.#at).toISOString(),
      ...(parts.length > 0 && { message: { ...this.#place, messageId, role: "ROLE_AGENT", parts } }),
    };
  }

  get #statusParts(): readonly WirePart[] {
    if (this.#state === "TASK_STATE_INPUT_REQUIRED") return this.#asks;
    const ended = this.#ending === undefined ? null : (endText(this.#ending) ?? this.#ending.reason);
    return ended === null ? [] : [{ text: ended }];
  }

  get #metadata(): JsonObject {
    const end = this.#ending;
    if (end === undefined) return { reeve: { runId: this.#run.runId } };
    const { status, costUsd, turns, carriedOverTo } = end;
    return {
      reeve: {
        runId: this.#run.runId,
        status,
        costUsd,
        turns,
        ...(carriedOverTo !== null && { nextTaskId: carriedOverTo }),
      },
    };
  }

  #statusUpdate(): WireUpdate {
    return { statusUpdate: { ...this.#place, status: this.#status, metadata: this.#metadata } };
  }

  #artifactUpdate(artifact: WireArtifact, append: boolean): WireUpdate {
    return { artifactUpdate: { ...this.#place, artifact, append } };
  }
}

function answerArtifact(parts: readonly WirePart[]): WireArtifact {
  return { artifactId: answerId, name: answerId, parts };
}

/** The id of the message that started a run. */
function idIn(metadata: JsonObject): string | undefined {
  const id = metadata["clientMessageId"];
  return typeof id === "string" ? id : undefined;
}

/** An input of a run, as the parts of a message. */
function wireParts(input: JsonValue): readonly WirePart[] {
  if (typeof input === "string") return [{ text: input }];
  if (!Array.isArray(input)) return [{ data: input }];
  return (input as unknown as readonly UserPart[]).map((part): WirePart => {
    if (part.type === "text") return { text: part.text };
    const { source, mediaType } = part;
    return { ...(source.kind === "url" ? { url: source.url } : { raw: source.data }), mediaType };
  });
}

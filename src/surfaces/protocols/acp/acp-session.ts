import { randomUUID } from "node:crypto";
import type {
  AgentContext,
  ContentBlock,
  PromptResponse,
  SessionModeState,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import {
  type AnswerEnd,
  AnswerFold,
  type AnswerPart,
  followAnswer,
  readInput,
} from "../../../agents/index.ts";
import {
  Fault,
  type JsonValue,
  type RunHandle,
  type RunStatus,
  type RunSummary,
  type SessionId,
  formatRunId,
  parseAgentId,
  userMessage,
} from "../../../kernel/index.ts";
import { readQuestions, type AskedQuestion } from "../client-answers.ts";
import type { EditorFolder } from "./acp-host.ts";
import { AnswerUpdates } from "./answer-updates.ts";
import { contentBlock, textBlock } from "./content-blocks.ts";
import { historyUpdates } from "./history-updates.ts";
import { OpenQuestions } from "./open-questions.ts";
import { promptInput, type PromptInput } from "./prompt-input.ts";

/** The part of a run that was shown: all events before `next`. */
interface ShownRun {
  readonly runId: RunHandle["runId"];
  readonly next: number;
}

/**
 * Shows a run whose messages are not in its session yet, because it has not ended or has failed. The last text
 * explains how to continue the run. Takes O(events of the run).
 */
async function showRun(
  run: RunHandle,
  { endedAt }: RunSummary,
  root: string,
  notify: (update: SessionUpdate) => Promise<void>,
): Promise<ShownRun> {
  const { runId } = run;
  const fold = new AnswerFold();
  const updates = new AnswerUpdates(root);
  let next = 0;
  let problem = "";
  for await (const event of run.events({ follow: false })) {
    if (!("seq" in event)) continue;
    next = event.seq + 1;
    if (event.type === "run_start") for (const update of inputUpdates(event.data.input)) await notify(update);
    if (event.type === "task_end" && event.taskId === "t0") problem = event.data.failure?.message ?? "";
    for (const part of fold.read(event)) for (const update of updates.read(part)) await notify(update);
  }
  const how = "Send /resume to continue it";
  const text =
    endedAt === null
      ? `\n\n[${runId} has not ended. ${how}, or a message that it reads next.]`
      : `\n\n[${runId} failed: ${problem} ${how}.]`;
  await notify({
    sessionUpdate: "agent_message_chunk",
    content: textBlock(text),
    messageId: `${runId}/notice`,
  });
  return { runId, next };
}

function inputUpdates(input: JsonValue): readonly SessionUpdate[] {
  return (readInput(input)?.message?.content ?? []).map((part) => ({
    sessionUpdate: "user_message_chunk",
    content: contentBlock(part),
  }));
}

export interface AcpSessionOptions {
  readonly sessionId: SessionId;
  readonly cwd: string;
  readonly folder: EditorFolder;
  readonly client: AgentContext;
  /** Aborts when the editor has left. */
  readonly closed: AbortSignal;
  /** Writes a line for the person who operates this process. */
  readonly log: (line: string) => void;
}

/** A prompt that is being answered. */
interface OpenPrompt {
  isCancelled: boolean;
  run?: RunHandle;
}

/** A run to follow. */
interface Following {
  readonly run: RunHandle;
  /** Seq of the first event to show. */
  readonly fromSeq: number;
  /** The user's message of the prompt. It is not sent again, because the editor shows it itself. */
  readonly own?: string;
}

/** The name under which commands of the editor's user are recorded. */
const person = "person";

const resumeCommand = {
  name: "resume",
  description: "Continue the run that was interrupted or failed",
} as const;

/** The stop reason of a prompt, by the status of its run. A status that is not listed is reported as an error. */
const stopReasons: { readonly [Status in RunStatus]?: StopReason } = {
  completed: "end_turn",
  max_turns: "max_turn_requests",
  max_output: "max_tokens",
  guardrail_tripped: "refusal",
  cancelled: "cancelled",
  paused: "end_turn",
};

/** A conversation that an editor has opened. If the editor disconnects, its run continues (rule C3). */
export class AcpSession {
  readonly sessionId: SessionId;
  readonly cwd: string;
  readonly #folder: EditorFolder;
  readonly #client: AgentContext;
  readonly #closed: AbortSignal;
  readonly #log: (line: string) => void;
  readonly #questions: OpenQuestions;
  #agentName: string;
  #prompt: OpenPrompt | undefined;
  #shown: ShownRun | undefined;
  #title: string | null = null;

  constructor({ sessionId, cwd, folder, client, closed, log }: AcpSessionOptions) {
    this.sessionId = sessionId;
    this.cwd = cwd;
    this.#folder = folder;
    this.#client = client;
    this.#closed = closed;
    this.#log = log;
    this.#agentName = folder.agentName;
    this.#questions = new OpenQuestions({
      sessionId,
      root: folder.root,
      ask: (request, cancellationSignal) =>
        client.request("session/request_permission", request, {
          cancellationSignal,
          stopWaitingOnCancel: true,
        }),
      say: (text) => this.#say(text),
      onCancel: () => this.#tryToCancel(),
      log,
      isClosed: () => closed.aborted,
    });
  }

  /** The agents of the folder, offered as modes of the session. */
  get modes(): SessionModeState {
    return {
      currentModeId: this.#agentName,
      availableModes: this.#folder.agents.map(({ name, description }) => ({
        id: name,
        name,
        ...(description !== undefined && { description }),
      })),
    };
  }

  set agentName(name: string) {
    const known = this.#folder.agents.map((each) => each.name);
    if (!known.includes(name))
      throw new Fault(
        "invalid_argument",
        `unknown mode ${JSON.stringify(name)}: use one of ${known.join(", ")}`,
      );
    this.#agentName = name;
  }

  /**
   * Sends the list of commands to the editor. This must happen after the response to the editor's request, because
   * only then the editor knows the session.
   */
  announce(): void {
    const availableCommands = [resumeCommand, ...this.#folder.commands].map(
      ({ name, description, ...more }) => ({
        name,
        description,
        input: "hint" in more && more.hint !== undefined ? { hint: more.hint } : null,
      }),
    );
    setImmediate(() => {
      this.#notify({ sessionUpdate: "available_commands_update", availableCommands }).catch(
        (error: unknown) =>
          this.#log(`the editor has not received the commands: ${Fault.from(error).message}`),
      );
    });
  }

  /** Throws `not_found` if the session is not stored, that is, if it has neither entries nor a run. */
  async requireStored(): Promise<void> {
    const isStored =
      (await this.#folder.runtime.sessions.get(this.sessionId)) !== undefined ||
      (await this.#latestRun()) !== undefined;
    if (!isStored) throw new Fault("not_found", `session ${this.sessionId} does not exist in ${this.cwd}`);
  }

  /** Continues a stored session. If `shows` is `true`, its whole conversation is sent to the editor. */
  async load({ shows }: { readonly shows: boolean }): Promise<void> {
    const { runtime, root, agents, isAgentChosen } = this.#folder;
    const session = await runtime.sessions.get(this.sessionId);
    const latest = await this.#latestRun();
    this.#title = session?.name ?? session?.title ?? null;
    const name = latest === undefined ? undefined : parseAgentId(latest.agentId).name;
    if (!isAgentChosen && agents.some((each) => each.name === name))
      this.#agentName = name ?? this.#agentName;
    const path = session === undefined ? [] : await runtime.sessions.path(this.sessionId);
    if (shows) for (const update of historyUpdates(path, root)) await this.#notify(update);
    if (latest === undefined) return;
    const isHidden = latest.status === "failed" && !path.some(({ runId }) => runId === latest.runId);
    if (!isHidden && latest.endedAt !== null) return;
    const run = await runtime.find(latest.runId);
    if (run === undefined) return;
    this.#shown = await showRun(run, latest, root, shows ? (update) => this.#notify(update) : ignore);
  }

  /** Answers a prompt. Resolves when the run has ended. `signal` aborts if the editor cancels the request. */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResponse> {
    if (this.#prompt !== undefined)
      throw new Fault("agent_busy", `session ${this.sessionId} is answering a prompt; cancel it or wait`);
    // An editor may cancel a request before this process has begun to handle it.
    const prompt: OpenPrompt = { isCancelled: signal.aborted && !this.#closed.aborted };
    this.#prompt = prompt;
    const onAbort = (): void => {
      if (!this.#closed.aborted) this.#tryToCancel();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      let following: Following | undefined = await this.#start(blocks);
      let end: AnswerEnd | undefined;
      while (following !== undefined) {
        prompt.run = following.run;
        if (prompt.isCancelled) await this.#cancelRun(following.run);
        end = await this.#follow(following);
        following = await this.#carriedOver(end);
      }
      if (end === undefined) return { stopReason: "cancelled" };
      await this.#report();
      return { stopReason: stopReasonOf(end, prompt.run) };
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#questions.withdraw();
      this.#prompt = undefined;
    }
  }

  /** Cancels the run of the prompt. The prompt is answered when the run has ended. */
  async cancel(): Promise<void> {
    const prompt = this.#prompt;
    if (prompt === undefined) return;
    prompt.isCancelled = true;
    this.#questions.withdraw();
    if (prompt.run !== undefined) await this.#cancelRun(prompt.run);
  }

  /** Cancels the run of the prompt. If that fails, the run continues, and the editor shows the error. */
  #tryToCancel(): void {
    this.cancel()
      .catch((error: unknown) => {
        const problem = `the run was not cancelled: ${Fault.from(error).message}`;
        this.#log(problem);
        return this.#say(`\n\n[${problem}]`);
      })
      .catch((error: unknown) => this.#log(Fault.from(error).message));
  }

  async #cancelRun(run: RunHandle): Promise<void> {
    await run.cancel("cancelled in the editor");
  }

  async #start(blocks: readonly ContentBlock[]): Promise<Following> {
    const input = promptInput(blocks);
    if (typeof input === "string" && input.trim() === `/${resumeCommand.name}`) return this.#resume();
    const { runtime } = this.#folder;
    const { agent, metadata } = await this.#folder.agent(this.#agentName, this.sessionId);
    const expanded = await this.#expand(input);
    const runId = formatRunId(randomUUID());
    const run = await agent.submit(expanded, {
      runtime,
      runId,
      sessionId: this.sessionId,
      metadata,
      userId: person,
      channel: "acp",
      streaming: true,
      whenBusy: "steer",
    });
    const own = JSON.stringify(userMessage(expanded).content);
    if (run.runId === runId) return { run: run.as(person), fromSeq: 0, own };
    // S5: an unfinished run of the session has taken the message.
    return { run: run.as(person), fromSeq: await this.#nextOf(run), own };
  }

  async #expand(input: PromptInput): Promise<PromptInput> {
    return typeof input === "string" ? this.#folder.expand(input, this.sessionId) : input;
  }

  /** Continues the last run of the session, which was interrupted or has failed. */
  async #resume(): Promise<Following> {
    const { runtime } = this.#folder;
    const latest = await this.#latestRun();
    if (latest === undefined || latest.status === "completed")
      throw new Fault(
        "invalid_argument",
        "there is nothing to resume: the last run of the session has completed",
      );
    const found = await runtime.find(latest.runId);
    if (found === undefined) throw new Fault("not_found", `run ${latest.runId} does not exist`);
    const run = found.as(person);
    const { agent } = await this.#folder.agent(parseAgentId(latest.agentId).name, this.sessionId);
    const fromSeq = await this.#nextOf(run);
    runtime.register(agent);
    if (latest.endedAt !== null || latest.status === "paused") {
      await run.resume();
      await this.#folder.whenResumed(run.runId);
    }
    return { run, fromSeq };
  }

  async #latestRun(): Promise<RunSummary | undefined> {
    const { sessionId } = this;
    const { runs } = await this.#folder.runtime.list({ sessionId, kind: "invocation", limit: 1 });
    return runs[0];
  }

  /** Returns the sequence number of the first event of a run that the editor has not shown. */
  async #nextOf(run: RunHandle): Promise<number> {
    if (this.#shown?.runId === run.runId) return this.#shown.next;
    let next = 0;
    for await (const event of run.events({ follow: false })) if ("seq" in event) next = event.seq + 1;
    return next;
  }

  /** Shows a run until its end. Returns `undefined` if the editor has disconnected. */
  async #follow({ run, fromSeq, own }: Following): Promise<AnswerEnd | undefined> {
    const updates = new AnswerUpdates(this.#folder.root);
    // Questions that were asked before are not in the part of the log that is shown.
    if (fromSeq > 0) for (const question of await pendingQuestions(run)) this.#questions.ask(run, question);
    for await (const part of followAnswer(run, { fromSeq, onPerson: "wait", signal: this.#closed })) {
      if (part.type === "end") return part;
      if (part.type === "question") this.#questions.ask(run, part);
      if (part.type === "decision") this.#questions.settle(part.questionId);
      if (isOwn(part, own)) continue;
      for (const update of updates.read(part)) await this.#notify(update);
    }
    return undefined;
  }

  /** Returns the run that answers the input that the ended run has not read (rule S5). */
  async #carriedOver(end: AnswerEnd | undefined): Promise<Following | undefined> {
    const next = end?.carriedOverTo ? await this.#folder.runtime.find(end.carriedOverTo) : undefined;
    return next && { run: next.as(person), fromSeq: 0 };
  }

  /** Sends the title of the session, and the part of the model's context window that the session fills. */
  async #report(): Promise<void> {
    const { sessions } = this.#folder.runtime;
    const session = await sessions.get(this.sessionId);
    if (session === undefined) return;
    const title = session.name ?? session.title;
    if (title !== this.#title) {
      this.#title = title;
      const updatedAt = new Date(session.updatedAt).toISOString();
      await this.#notify({ sessionUpdate: "session_info_update", title, updatedAt });
    }
    const { tokens: used, contextWindow: size } = await sessions.contextUsage(this.sessionId);
    if (size !== null) await this.#notify({ sessionUpdate: "usage_update", used, size });
  }

  #say(text: string): Promise<void> {
    return this.#notify({ sessionUpdate: "agent_message_chunk", content: textBlock(text) });
  }

  async #notify(update: SessionUpdate): Promise<void> {
    if (this.#closed.aborted) return;
    await this.#client.notify("session/update", { sessionId: this.sessionId, update });
  }
}

/** Returns the questions for whose answers the run waits. Takes O(events of the run). */
async function pendingQuestions(run: RunHandle): Promise<readonly AskedQuestion[]> {
  const pending = new Set((await run.pendingApprovals()).map(({ approvalId }) => approvalId));
  const { all } = await readQuestions(run);
  return all.filter(({ request }) => pending.has(request.approvalId));
}

/** Whether the part is the prompt's own message, which an active run has read. */
function isOwn(part: AnswerPart, own: string | undefined): boolean {
  return part.type === "user_message" && JSON.stringify(part.message.content) === own;
}

function stopReasonOf({ status, reason, failure }: AnswerEnd, run: RunHandle | undefined): StopReason {
  const stopReason = stopReasons[status];
  if (stopReason !== undefined) return stopReason;
  const code = failure?.code ?? "internal";
  throw new Fault("internal", `the run ended as ${status}: ${reason ?? "no reason is known"}`, {
    details: { code, status, ...(run !== undefined && { runId: run.runId }) },
  });
}

async function ignore(): Promise<void> {}

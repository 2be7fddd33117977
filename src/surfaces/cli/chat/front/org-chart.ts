import {
  Fault,
  rootTaskId,
  visibleLine,
  type Delta,
  type Event,
  type RunId,
  type TaskId,
} from "../../../../kernel/index.ts";
import type { LiveMessage } from "../../../view/live-text.ts";
import type { RunView } from "../../../view/run-view.ts";
import { statusWords } from "../../../view/status-words.ts";
import { dollars } from "../../terminal/format.ts";
import { ChatModel } from "../model/chat-model.ts";
import { piMeasure } from "../screen/pi-board.ts";
import type { Part, Picture, Screen } from "../screen/screen.ts";
import type { Theme } from "../screen/theme.ts";
import { AgentTree } from "./agent-tree.ts";
import { blockOf } from "./chat-blocks.ts";
import type { Desk } from "./desk.ts";
import { askQuestion, goneWords, questionLine } from "./questions.ts";
import { amountExamples, amountOf } from "./top-up-amount.ts";

/** The keys of the chart, for help. */
const chartKeys =
  "↑↓ choose · Enter conversation · a answer · u top up · p pause or resume · s steer · c cancel · f folds ended agents · Esc back";

export interface OrgChartOptions {
  readonly desk: Pick<Desk, "client" | "pick" | "ask" | "say">;
  readonly runId: string;
  readonly view: () => RunView | undefined;
  /** The text that the model of an agent is writing now, or its last text. */
  readonly liveText: ChatModel["liveText"];
  readonly onChange: () => void;
  /** The person leaves the chart. */
  readonly onLeave: () => void;
}

/** The conversation of an agent. It grows while the agent works. */
interface AgentConversation {
  readonly taskId: TaskId;
  readonly model: ChatModel;
  /**
   * Events and deltas that arrive before the earlier events are read. `undefined` after the earlier events are
   * read.
   */
  early: (Event | Delta)[] | undefined;
}

/**
 * Shows the agents of a run as a live chart, with their costs and their questions, and executes the actions of the
 * person in this chart.
 */
export class OrgChart {
  readonly #options: OrgChartOptions;
  readonly #tree = new AgentTree();
  #conversation: AgentConversation | undefined;
  #said = "";
  /** The question that is being asked. */
  #asked: { readonly approvalId: string; readonly withdraw: AbortController } | undefined;

  constructor(options: OrgChartOptions) {
    this.#options = options;
  }

  /** Handles a key. Returns whether the key has a meaning in the chart. */
  key(matches: (key: string) => boolean): boolean {
    const move = matches("up") || matches("k") ? -1 : matches("down") || matches("j") ? 1 : 0;
    if (move !== 0) this.#move(move);
    else if (matches("escape") || matches("q")) this.#leave();
    else if (matches("f")) this.#tree.fold();
    else {
      const act = this.#actOf(matches);
      if (act === undefined) return false;
      act().catch((error: unknown) => this.#say(Fault.from(error).message));
    }
    this.#options.onChange();
    return true;
  }

  /** Adds an event or delta of the run to the conversation that is open. */
  add(item: Event | Delta): void {
    if (this.#asked !== undefined && !this.#isOpen(this.#asked.approvalId)) this.#asked.withdraw.abort();
    const conversation = this.#conversation;
    if (conversation?.taskId !== item.taskId) return;
    if (conversation.early === undefined) conversation.model.add(item);
    else conversation.early.push(item);
  }

  picture(theme: Theme, { columns, rows }: Pick<Screen, "columns" | "rows">): Picture {
    const view = this.#options.view();
    const conversation = this.#conversation;
    const head = theme.paint("strong", `Run ${this.#options.runId}`);
    const below = [
      theme.paint("dim", chartKeys),
      ...(this.#said === "" ? [] : [theme.paint("hold", this.#said)]),
    ];
    if (view === undefined)
      return { blocks: [], above: [{ kind: "line", text: head }], below, hidesComposer: true };
    if (conversation !== undefined)
      return {
        blocks: conversation.model.items.slice(-200).map((item) => {
          const block = blockOf(item, { theme, isOpen: false });
          // The parts of the chat have the same ids.
          return { ...block, version: `${conversation.taskId} ${block.version}` };
        }),
        above: [{ kind: "text", text: "" }],
        below: [theme.paint("dim", "Esc returns to the chart")],
        hidesComposer: true,
      };
    this.#tree.show(view);
    const questions = questionParts(view, theme);
    // The head, the keys and what was said last stand around the tree.
    const room = Math.max(2, rows - questions.length - below.length - 2);
    const lines = this.#tree.lines({ columns, rows: room, theme, measure: piMeasure, now: Date.now() });
    return {
      blocks: [],
      above: [
        { kind: "line", text: `${head} ${theme.paint("dim", runWords(view))}` },
        ...lines.map((text): Part => ({ kind: "line", text })),
        ...questions,
      ],
      below,
      hidesComposer: true,
    };
  }

  #actOf(matches: (key: string) => boolean): (() => Promise<void>) | undefined {
    if (matches("enter")) return () => this.#open();
    if (matches("a")) return () => this.#answer();
    if (matches("u") || matches("t")) return () => this.#topUp();
    if (matches("p")) return () => this.#pause();
    if (matches("s")) return () => this.#steer();
    if (matches("c")) return () => this.#cancel();
    return undefined;
  }

  #move(by: number): void {
    const view = this.#options.view();
    if (view === undefined || this.#conversation !== undefined) return;
    this.#tree.show(view);
    this.#tree.move(by);
  }

  /** The chosen agent. */
  get #selected(): TaskId {
    return this.#tree.marked?.taskId ?? rootTaskId;
  }

  #leave(): void {
    if (this.#conversation === undefined) return this.#options.onLeave();
    this.#conversation = undefined;
  }

  #say(text: string): void {
    this.#said = visibleLine(text);
    this.#options.onChange();
  }

  /** Shows the conversation of the chosen agent, and updates it while the agent works. */
  async #open(): Promise<void> {
    const { desk, runId, liveText } = this.#options;
    const taskId = this.#selected;
    const model = new ChatModel(taskId);
    model.follow(runId, { isInputShown: false, isQuiet: false });
    const early: (Event | Delta)[] = [];
    const conversation: AgentConversation = { taskId, model, early };
    this.#conversation = conversation;
    const query = { limit: 5_000, taskId, last: true };
    const { events } = await desk.client.get("/api/runs/{runId}/events", { params: { runId }, query });
    for (const event of events) model.add(event);
    for (const delta of writtenSoFar(liveText(taskId), { runId, taskId }, events)) model.add(delta);
    for (const item of early) model.add(item);
    conversation.early = undefined;
    this.#options.onChange();
  }

  async #answer(): Promise<void> {
    const { desk, runId } = this.#options;
    const open = [...(this.#options.view()?.asked ?? [])].filter(({ decision }) => decision === null);
    const question = open.find(({ taskId }) => taskId === this.#selected) ?? open[0];
    if (question === undefined) return this.#say("No agent asks anything.");
    const { approvalId } = question.request;
    const withdraw = new AbortController();
    this.#asked = { approvalId, withdraw };
    const decision = await askQuestion(desk, question, withdraw.signal).finally(() => {
      this.#asked = undefined;
    });
    if (withdraw.signal.aborted) return this.#say(goneWords);
    if (decision === undefined) return;
    await desk.client.post("/api/runs/{runId}/decide", {
      params: { runId },
      body: { approvalId, ...decision },
    });
    this.#say("Answered.");
  }

  #isOpen(approvalId: string): boolean {
    const view = this.#options.view();
    return [...(view?.asked ?? [])].some(({ decision, taskId, request }) => {
      const isLive = (view?.tasks.get(taskId)?.endedAt ?? null) === null;
      return request.approvalId === approvalId && decision === null && isLive;
    });
  }

  async #topUp(): Promise<void> {
    const { desk, runId } = this.#options;
    const amount = await desk.ask(`How much is added to ${this.#selected}, such as ${amountExamples}?`);
    if (amount === undefined || amount.trim() === "") return;
    const body = { ...amountOf(amount), taskId: this.#selected };
    await desk.client.post("/api/runs/{runId}/top-up", { params: { runId }, body });
    this.#say(`Added ${amount} to ${this.#selected}.`);
  }

  async #pause(): Promise<void> {
    const { desk, runId } = this.#options;
    const isPaused = this.#options.view()?.status === "paused";
    const values = { params: { runId }, body: {} };
    await (isPaused
      ? desk.client.post("/api/runs/{runId}/resume", values)
      : desk.client.post("/api/runs/{runId}/pause", values));
    this.#say(isPaused ? "The run is resumed." : "The run pauses when its calls in flight have ended.");
  }

  async #steer(): Promise<void> {
    const { desk, runId } = this.#options;
    const input = await desk.ask(`What should ${this.#selected} read before its next turn?`);
    if (input === undefined || input.trim() === "") return;
    await desk.client.post("/api/runs/{runId}/steer", {
      params: { runId },
      body: { input, taskId: this.#selected },
    });
    this.#say(`${this.#selected} reads it before its next turn.`);
  }

  async #cancel(): Promise<void> {
    const { desk, runId } = this.#options;
    const isRoot = this.#selected === rootTaskId;
    const isWanted = await desk.pick({
      title: isRoot ? "Cancel the whole run?" : `Cancel ${this.#selected} with its reports?`,
      choices: [
        { value: true, label: "Cancel it", key: "y" },
        { value: false, label: "Leave it", key: "n" },
      ],
    });
    if (isWanted !== true) return;
    const body = { reason: "cancelled at the terminal", ...(!isRoot && { taskId: this.#selected }) };
    await desk.client.post("/api/runs/{runId}/cancel", { params: { runId }, body });
    this.#say("The cancel is sent.");
  }
}

/** Returns the text that a model has written so far of a message that is not yet among the events. */
function writtenSoFar(
  live: LiveMessage | undefined,
  { runId, taskId }: { readonly runId: string; readonly taskId: TaskId },
  events: readonly Event[],
): readonly Delta[] {
  if (live === undefined || events.some(({ type, seq }) => type === "message_end" && seq > live.messageSeq))
    return [];
  const { messageSeq, attempt } = live;
  return (["reasoning", "text"] as const).map((kind) => ({
    type: "message_update",
    runId: runId as RunId,
    taskId,
    messageSeq,
    attempt,
    kind,
    offset: 0,
    text: live[kind],
  }));
}

function runWords(view: RunView): string {
  const root = view.tasks.get(rootTaskId);
  const budget = root?.budget?.maxCostUsd ?? null;
  const cost = dollars(root?.total.costUsd ?? 0);
  return [
    statusWords[view.status],
    `${cost}${budget === null ? "" : ` of ${dollars(budget)}`}`,
    `seats ${view.seats}${view.maxSeats === null ? "" : ` of ${view.maxSeats}`}`,
    `${view.live} at work`,
  ].join(" · ");
}

function questionParts(view: RunView, theme: Theme): readonly Part[] {
  const open = [...view.asked].filter(({ decision }) => decision === null);
  return open.map(({ agentId, request }) => ({
    kind: "line",
    text: `${theme.paint("hold", "?")} ${theme.paint("strong", visibleLine(agentId))} ${questionLine(request)}`,
  }));
}

import { visibleLine, type ApprovalDecision, type TaskId } from "../../../kernel/index.ts";
import type { RouteClient } from "../../client/route-client.ts";
import { blockOf } from "../chat/front/chat-blocks.ts";
import { captureStray } from "../chat/front/interactive.ts";
import { AgentTree } from "../chat/front/agent-tree.ts";
import { askQuestion } from "../chat/front/questions.ts";
import { ChatModel } from "../chat/model/chat-model.ts";
import type { Board } from "../chat/screen/board.ts";
import { piBoard } from "../chat/screen/pi-board.ts";
import { partLines } from "../chat/screen/pi-screen.ts";
import { themeFor, themeOf, type Role, type Theme } from "../chat/screen/theme.ts";
import type { TaskView } from "../../view/run-view.ts";
import type { ExitKind } from "../terminal/exit-code.ts";
import { reserveStdout } from "../terminal/process-terminal.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { questionLines, ruleLine, type BoardFoot, type BoardPlace } from "./board-lines.ts";
import { runBoardLines, type RunPanel } from "./run-board.ts";
import { RunFeed, type Run } from "./run-feed.ts";
import { fittingRuns, storeBoardLines } from "./store-board.ts";
import { StoreFeed } from "./store-feed.ts";
import { itemId, itemsOfInbox, itemsOfRun, type RunQuestion, type WatchItem } from "./watch-items.ts";
import { helpLines, runKeys, storeKeys, watchKeyOf, type WatchKey } from "./watch-keys.ts";
import { orderProblem, WatchOrders, type OrderTarget } from "./watch-orders.ts";

export interface WatchFrontOptions {
  readonly client: RouteClient;
  readonly terminal: Terminal;
  /** The address of the store, or of the server, that contains the runs. */
  readonly place: string;
  /** The run to show first. If absent, all runs are shown. */
  readonly runId: string | undefined;
}

/** Milliseconds between two pictures. */
const frameMs = 100;
/** Milliseconds between two drawings in which only times change. */
const tickMs = 1_000;
const pageRows = 10;
/** Maximum number of parts of a conversation that are drawn. */
const mostItems = 200;
/** Maximum number of past events that are read when an agent's conversation is opened. */
const mostEvents = 1_000;

/** The conversation of one agent, as `reeve chat` shows it. */
interface AgentConversation {
  readonly taskId: TaskId;
  readonly agentId: string;
  readonly model: ChatModel;
  /** Number of lines below those in view. */
  fromEnd: number;
}

/** Shows runs on the whole terminal until the person leaves. */
export function interactiveWatch(options: WatchFrontOptions): Promise<ExitKind> {
  return new InteractiveWatch(options).run();
}

class InteractiveWatch {
  readonly #options: WatchFrontOptions;
  readonly #client: RouteClient;
  readonly #board: Board;
  readonly #theme: Theme;
  readonly #store: StoreFeed;
  readonly #orders: WatchOrders;
  readonly #left = Promise.withResolvers<void>();
  readonly #chart = new AgentTree();
  #run: RunFeed | undefined;
  #panel: RunPanel = "inbox";
  /** The marked item of the inbox. `undefined` if the inbox does not have the focus. */
  #markedItem: string | undefined;
  #markedRun: string | undefined;
  #filter = "";
  #message: BoardFoot["message"];
  #isHelpOpen = false;
  #conversation: AgentConversation | undefined;
  #asked: { readonly about: RunQuestion; readonly withdraw: AbortController; from: number } | undefined;
  /**
   * Whether the person is being asked for an order, or the order is being sent. The next order waits until the
   * result is shown.
   */
  #isBusy = false;
  #frame: NodeJS.Timeout | undefined;
  #ticker: NodeJS.Timeout | undefined;

  constructor(options: WatchFrontOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#theme = themeOf(themeFor(options.terminal.env, undefined));
    this.#board = piBoard({
      theme: this.#theme,
      write: reserveStdout(),
      draw: (columns, rows) => this.#lines(columns, rows),
      onKey: (matches, isAsking) => this.#key(matches, isAsking),
      onGone: () => this.#left.resolve(),
    });
    this.#orders = new WatchOrders(options.client, this.#board);
    this.#store = new StoreFeed({
      client: options.client,
      onChange: () => this.#changed(),
      onProblem: (error) => this.#fail(error),
      onRun: (run) => this.#run?.update(run),
    });
  }

  async run(): Promise<ExitKind> {
    const { runId } = this.#options;
    if (runId !== undefined) await this.#openRun(runId);
    const release = captureStray((line) => this.#say(line, "hold"));
    const onSignal = (): void => this.#left.resolve();
    process.on("SIGHUP", onSignal).on("SIGTERM", onSignal).on("SIGINT", onSignal);
    this.#board.start();
    this.#ticker = setInterval(() => this.#tick(), tickMs);
    try {
      await this.#left.promise;
    } finally {
      clearTimeout(this.#frame);
      clearInterval(this.#ticker);
      this.#board.stop();
      release();
      process.off("SIGHUP", onSignal).off("SIGTERM", onSignal).off("SIGINT", onSignal);
      this.#run?.close();
      this.#store.close();
    }
    return "ok";
  }

  async #openRun(runId: string): Promise<void> {
    const feed = await RunFeed.open(runId, {
      client: this.#client,
      onChange: () => this.#changed(),
      onEvent: (event) => {
        const open = this.#conversation;
        if (open?.taskId === event.taskId) open.model.add(event);
      },
      onProblem: (error) => this.#fail(error),
    });
    this.#run?.close();
    this.#run = feed;
    this.#markedItem = undefined;
    this.#panel = "inbox";
    this.#chart.show(feed.view);
    this.#store.setShown(false);
    this.#changed();
  }

  /** Opens the conversation of an agent. It is updated while the agent works. */
  async #openConversation({ taskId, agentId }: TaskView): Promise<void> {
    const runId = this.#run?.run.runId;
    if (runId === undefined) return;
    const query = { limit: mostEvents, taskId, last: true };
    const { events } = await this.#client.get("/api/runs/{runId}/events", { params: { runId }, query });
    const model = new ChatModel(taskId);
    model.follow(runId, { isInputShown: false, isQuiet: false });
    for (const event of events) model.add(event);
    this.#conversation = { taskId, agentId, model, fromEnd: 0 };
  }

  #leaveRun(): void {
    this.#markedRun = this.#run?.run.runId;
    this.#run?.close();
    this.#run = undefined;
    this.#conversation = undefined;
    this.#markedItem = undefined;
    this.#store.setShown(true);
    this.#changed();
  }

  #key(matches: (key: string) => boolean, isAsking: boolean): boolean {
    const key = watchKeyOf(matches);
    if (isAsking) {
      const asked = this.#asked;
      if (asked === undefined || (key !== "pageUp" && key !== "pageDown")) return false;
      asked.from = Math.max(0, asked.from + (key === "pageDown" ? pageRows : -pageRows));
      this.#board.draw();
      return true;
    }
    if (key === undefined) return false;
    this.#message = undefined;
    if (this.#isHelpOpen && key !== "leave") this.#isHelpOpen = false;
    else if (this.#conversation !== undefined) this.#actInConversation(this.#conversation, key);
    else this.#act(key);
    this.#board.draw();
    return true;
  }

  #actInConversation(open: AgentConversation, key: WatchKey): void {
    const by = { up: 1, down: -1, pageUp: pageRows, pageDown: -pageRows }[key as string];
    if (by !== undefined) open.fromEnd = Math.max(0, open.fromEnd + by);
    else if (key === "leave" || key === "suspend") this.#act(key);
    else if (key === "back" || key === "open") this.#conversation = undefined;
  }

  #act(key: WatchKey): void {
    switch (key) {
      case "up":
        return this.#move(-1);
      case "down":
        return this.#move(1);
      case "pageUp":
        return this.#move(-pageRows);
      case "pageDown":
        return this.#move(pageRows);
      case "open":
        return this.#open();
      case "other":
        this.#markedItem = this.#markedItem === undefined ? this.#items[0]?.id : undefined;
        if (this.#run !== undefined) this.#panel = "inbox";
        return;
      case "info":
        this.#panel = this.#panel === "agent" ? "inbox" : "agent";
        return;
      case "fold":
        return this.#chart.fold();
      case "money":
        this.#panel = this.#panel === "money" ? "inbox" : "money";
        return;
      case "help":
        this.#isHelpOpen = true;
        return;
      case "filter":
        if (this.#run === undefined) this.#do(() => this.#askFilter());
        return;
      case "back":
        if (this.#run !== undefined) this.#leaveRun();
        else this.#filter = "";
        return;
      case "suspend":
        return this.#board.suspend();
      case "leave":
        return this.#left.resolve();
      default:
        return this.#order(key);
    }
  }

  #order(key: "answer" | "topUp" | "pause" | "steer" | "cancel"): void {
    if (key === "answer") return this.#answer();
    const target = this.#target;
    if (target === undefined) return this.#say("No run is marked.", "hold");
    this.#do(() => {
      switch (key) {
        case "topUp":
          return this.#orders.topUp(target);
        case "pause":
          return this.#orders.pauseOrResume(target);
        case "steer":
          return this.#orders.steer(target);
        case "cancel":
          return this.#orders.cancel(target);
      }
    });
  }

  /** The run and the agent to which orders are sent. */
  get #target(): OrderTarget | undefined {
    if (this.#run !== undefined) {
      this.#chart.show(this.#run.view);
      const task = this.#chart.marked;
      return { run: this.#run.run, ...(task !== undefined && { task }) };
    }
    const run = this.#runs.find(({ runId }) => runId === this.#markedRun) ?? this.#runs[0];
    return run === undefined ? undefined : { run };
  }

  get #runs(): readonly Run[] {
    return this.#filter === "" ? this.#store.runs : fittingRuns(this.#store.runs, this.#filter);
  }

  get #items(): readonly WatchItem[] {
    if (this.#run !== undefined) return itemsOfRun(this.#run);
    const { inbox } = this.#store;
    return inbox === undefined ? [] : itemsOfInbox(inbox);
  }

  /**
   * Returns the position of the marked item. If the marked item was answered, the first item becomes the marked
   * one.
   */
  #markedAt(items: readonly WatchItem[]): number | undefined {
    if (this.#markedItem === undefined || items.length === 0) return undefined;
    return Math.max(
      0,
      items.findIndex(({ id }) => id === this.#markedItem),
    );
  }

  #move(by: number): void {
    const items = this.#items;
    const at = this.#markedAt(items);
    if (at !== undefined) this.#markedItem = items[Math.max(0, Math.min(items.length - 1, at + by))]?.id;
    else if (this.#run !== undefined) this.#chart.move(by);
    else {
      const runs = this.#runs;
      const from = Math.max(
        0,
        runs.findIndex(({ runId }) => runId === this.#markedRun),
      );
      this.#markedRun = runs[Math.max(0, Math.min(runs.length - 1, from + by))]?.runId;
    }
  }

  #open(): void {
    const items = this.#items;
    const at = this.#markedAt(items);
    const item = at === undefined ? undefined : items[at];
    if (item !== undefined) return this.#actOn(item);
    const target = this.#target;
    if (this.#run !== undefined) {
      const { marked } = this.#chart;
      if (marked !== undefined) this.#do(() => this.#openConversation(marked));
    } else if (target !== undefined) this.#do(() => this.#openRun(target.run.runId));
  }

  /** Lets the person answer the marked item, or else the question of the marked agent, or else the oldest question. */
  #answer(): void {
    const items = this.#items;
    const at = this.#markedAt(items);
    if (at !== undefined && items[at] !== undefined) return this.#actOn(items[at]);
    const questions = items.filter(({ act }) => act.kind === "answer");
    const { task } = this.#target ?? {};
    const own = questions.find(
      ({ act }) => act.kind === "answer" && this.#run !== undefined && act.question.taskId === task?.taskId,
    );
    const item = own ?? questions[0] ?? items[0];
    if (item === undefined) return this.#say("Nothing waits for you.", "hold");
    this.#actOn(item);
  }

  #actOn({ act }: WatchItem): void {
    if (act.kind === "none") return this.#say("A program or a command answers this item.", "hold");
    this.#do(async () => {
      if (act.kind === "answer") return this.#ask(act);
      const run = await this.#client.get("/api/runs/{runId}", { params: { runId: act.runId } });
      return act.kind === "top-up" ? this.#orders.topUp({ run }) : this.#orders.pauseOrResume({ run });
    });
  }

  async #ask(about: RunQuestion): Promise<string | undefined> {
    const asked = { about, withdraw: new AbortController(), from: 0 };
    this.#asked = asked;
    const { question } = about;
    let said: string | undefined;
    const desk = {
      pick: this.#board.pick.bind(this.#board),
      ask: this.#board.ask.bind(this.#board),
      say: (text: string) => void (said = text),
    };
    const { signal } = asked.withdraw;
    let decision: ApprovalDecision | undefined;
    try {
      const view = { ...question, askedAt: 0, decision: null, decidedAt: null };
      decision = await askQuestion(desk, view, signal);
    } finally {
      this.#asked = undefined;
    }
    if (decision !== undefined) return this.#orders.decide(about, decision);
    return signal.aborted ? "The question was answered elsewhere." : said;
  }

  async #askFilter(): Promise<undefined> {
    const text = await this.#board.ask("Show the runs with these words, such as an agent or a status:", {
      initial: this.#filter,
    });
    if (text !== undefined) this.#filter = text.trim();
  }

  /** Executes one order at a time, and shows its result. */
  #do(order: () => Promise<string | undefined | void>): void {
    if (this.#isBusy) return this.#say("The last order is not finished.", "hold");
    this.#isBusy = true;
    const give = async (): Promise<void> => {
      try {
        const words = await order();
        if (typeof words === "string") this.#say(words, "good");
      } catch (error) {
        this.#fail(error);
      } finally {
        this.#isBusy = false;
        this.#changed();
      }
    };
    void give();
  }

  #say(text: string, role: Role): void {
    this.#message = { text: visibleLine(text), role };
    this.#changed();
  }

  #fail(error: unknown): void {
    this.#say(orderProblem(error), "bad");
  }

  #changed(): void {
    this.#withdrawAnswered();
    this.#frame ??= setTimeout(() => {
      this.#frame = undefined;
      this.#board.draw();
    }, frameMs);
  }

  /** Closes a question that was answered elsewhere, or whose agent has ended. */
  #withdrawAnswered(): void {
    const asked = this.#asked;
    if (asked === undefined) return;
    const { runId, question } = asked.about;
    // A list that is cut says nothing about the questions that it leaves out.
    const isWhole =
      this.#run === undefined ? this.#store.inbox?.questions.isMore === false : this.#run.run.runId === runId;
    const id = itemId(runId, question.request.approvalId);
    if (isWhole && !this.#items.some((item) => item.id === id)) asked.withdraw.abort();
  }

  /** Draws the elapsed times again. A run that has ended has no times that change. */
  #tick(): void {
    const isPassing =
      this.#run === undefined || this.#run.view.endedAt === null || this.#lostAt !== undefined;
    if (isPassing) this.#changed();
  }

  get #lostAt(): number | undefined {
    return this.#run?.lostAt ?? this.#store.lostAt;
  }

  #lines(columns: number, rows: number): readonly string[] {
    const place: BoardPlace = {
      columns,
      rows,
      theme: this.#theme,
      measure: this.#board.measure,
      now: Date.now(),
    };
    if (this.#asked !== undefined) {
      const { about, from } = this.#asked;
      const { shown, first } = questionLines(about, from, place);
      this.#asked.from = first;
      return shown;
    }
    if (this.#isHelpOpen) return helpLines(place);
    const open = this.#conversation;
    if (open !== undefined) {
      const { shown, fromEnd } = conversationLines(open, place);
      open.fromEnd = fromEnd;
      return shown;
    }
    const marked = this.#markedAt(this.#items);
    const foot: BoardFoot = {
      lostAt: this.#lostAt,
      keys: this.#run === undefined ? storeKeys : runKeys(this.#run.run),
      ...(this.#message !== undefined && { message: this.#message }),
    };
    if (this.#run !== undefined)
      return runBoardLines({ feed: this.#run, chart: this.#chart, panel: this.#panel, marked, foot }, place);
    return storeBoardLines(
      {
        feed: this.#store,
        place: this.#options.place,
        runs: this.#runs,
        filter: this.#filter,
        markedRun: this.#markedRun,
        marked,
        foot,
      },
      place,
    );
  }
}

/** Returns the visible lines of a conversation, counted from its end, and the distance of these lines from the end. */
function conversationLines(
  { agentId, model, fromEnd }: AgentConversation,
  place: BoardPlace,
): { readonly shown: readonly string[]; readonly fromEnd: number } {
  const { theme, columns, rows } = place;
  const all = model.items
    .slice(-mostItems)
    .flatMap((item) => blockOf(item, { theme, isOpen: false }).parts())
    .flatMap((part) => partLines(part, columns, theme));
  const room = Math.max(1, rows - 2);
  const below = Math.max(0, Math.min(fromEnd, all.length - room));
  const end = all.length - below;
  const shown = all.slice(Math.max(0, end - room), end);
  const space = Array.from({ length: Math.max(0, room - shown.length) }, () => "");
  const keys = theme.paint(
    "dim",
    place.measure.cut("Up, Down, PageUp and PageDown scroll  Esc returns", columns),
  );
  return { shown: [ruleLine(visibleLine(agentId), place), ...shown, ...space, keys], fromEnd: below };
}

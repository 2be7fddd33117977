import { Fault, visibleLine, visibleText, type RunStatus } from "../../../../kernel/index.ts";
import type { QuestionView } from "../../../view/run-view.ts";
import { exitKindOf, exitKindOfRun, type ExitKind } from "../../terminal/exit-code.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { RequestError, type RouteClient } from "../../../client/route-client.ts";
import type { Conversation } from "../client/conversation.ts";
import type { ChatServer } from "../client/local-server.ts";
import { faultOf } from "../client/server-place.ts";
import type { PlacedItem } from "../model/chat-item.ts";
import { inputText } from "../model/chat-words.ts";
import type { Part } from "../screen/screen.ts";
import { themeOf } from "../screen/theme.ts";
import { blockOf } from "./chat-blocks.ts";
import { commandOf, runExtension } from "./chat-commands.ts";
import type { Desk, FrontOptions } from "./desk.ts";
import { usualKeys } from "./keys.ts";
import { LineReader, other } from "./line-reader.ts";
import { isRead, onGone } from "./on-gone.ts";
import { askQuestion, goneWords } from "./questions.ts";
import { shellCommandOf, ShellCommands } from "./shell-commands.ts";

/** Runs a chat that prints lines and never moves the cursor: for pipes and screen readers. */
export function plainChat(options: FrontOptions): Promise<ExitKind> {
  return new PlainChat(options).run();
}

class PlainChat implements Desk {
  readonly conversation: Conversation;
  readonly client: RouteClient;
  readonly server: ChatServer;
  readonly env: Desk["env"];
  readonly #options: FrontOptions;
  readonly #terminal: Terminal;
  readonly #stop = new AbortController();
  readonly #lines: LineReader;
  readonly #printer: ItemPrinter;
  readonly #shell = new ShellCommands(process.cwd());
  /**
   * The result of each run and of each refused line, in the order in which they began. A run that was continued has
   * the result of its last end.
   */
  readonly #ends = new Map<string, ExitKind>();
  #isAsking = false;
  /** Whether an agent has asked a question since the chat began to wait for a line. */
  #isAsked = false;
  /** Whether the person has stopped the active run. */
  #isStopping = false;
  /** Resolves when the person does not want to wait any longer for unanswered requests. */
  readonly #left = Promise.withResolvers<void>();
  /** The question that is being asked. */
  #question: QuestionView | undefined;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#terminal = options.terminal;
    this.client = options.client;
    this.server = options.server;
    this.env = options.terminal.env;
    this.#lines = new LineReader(this.#terminal.peer?.lines);
    this.#printer = new ItemPrinter(options.terminal);
    this.conversation = options.converse(
      () => {
        const { isWorking, questions } = this.conversation.model;
        if (!this.#isAsking && questions.length > 0) this.#isAsked = true;
        if (!isWorking) this.#isStopping = false;
        this.#changed();
        this.#lines.wake();
      },
      (item) => {
        if (item.type === "run_end") this.#noteEnd(item.data.status);
      },
    );
    this.conversation.onProblem((error) => this.say(Fault.from(error).message, "bad"));
  }

  async run(): Promise<ExitKind> {
    const { conversation } = this;
    const forget = this.#terminal.onInterrupt(() => this.#interrupted());
    const stay = onGone(this.quit);
    this.server.local?.navigate({
      leave: this.quit,
      show: (sessionId) => void this.#show(sessionId),
    });
    const isPerson = this.#terminal.canAsk;
    try {
      await Promise.race([this.#converse(isPerson), this.#left.promise]);
    } finally {
      forget();
      stay();
      this.#lines.close();
      await this.#shell.close();
      this.#printer.finish(conversation.model.items);
      const { sessionId } = conversation;
      conversation.close();
      if (sessionId !== undefined) this.#terminal.say(`session ${visibleLine(sessionId)}`);
    }
    // A person has seen how each run ended.
    if (isPerson) return "ok";
    if (conversation.model.isWorking) return "busy";
    return [...this.#ends.values()].find((end) => end !== "ok") ?? "ok";
  }

  /** Opens the conversation, and executes lines until the input ends. */
  async #converse(isPerson: boolean): Promise<void> {
    const { conversation } = this;
    const { signal } = this.#stop;
    await this.#options.begin(conversation);
    this.#lines.open();
    for (;;) {
      // A person may steer at any time; lines of a pipe are sent one after the other.
      if (!isPerson) await this.#untilIdle();
      if (isPerson && conversation.model.questions.length > 0) await this.#answerAll();
      if (isPerson && !conversation.model.isWorking) this.#terminal.put("> ");
      this.#isAsked = false;
      const line = await this.#lines.next(() => this.#isAsked);
      if (line === other) continue;
      if (line === undefined || signal.aborted || !(await isRead(this.#terminal))) break;
      await this.#take(line);
    }
    if (!signal.aborted) await this.#untilIdle();
  }

  #noteEnd(status: RunStatus): void {
    const { runId = "", view } = this.conversation.model;
    this.#ends.set(runId, exitKindOfRun({ status, error: view?.failure ?? null }));
  }

  readonly say: Desk["say"] = (text, tone = "plain") => {
    this.conversation.model.note(text, tone);
    this.#changed();
  };

  /** Lists the choices with numbers and reads the answer. An empty line means that the person chooses nothing. */
  readonly pick: Desk["pick"] = async ({ title, choices }) => {
    const lines = choices.map(
      ({ label, key, description }, at) =>
        `  ${key ?? at + 1}) ${label}${description === undefined ? "" : `  ${description}`}`,
    );
    this.#terminal.say([title, ...lines].join("\n"));
    for (;;) {
      const line = await this.#lines.next(this.#isGone);
      const answer = line === undefined || line === other ? "" : line.trim();
      if (answer === "") return undefined;
      const chosen = choices.find(({ key, label }, at) => [key ?? String(at + 1), label].includes(answer));
      if (chosen !== undefined) return chosen.value;
      this.#terminal.say(
        `Answer with ${choices.some(({ key }) => key !== undefined) ? `one of ${choices.map(({ key }, at) => key ?? at + 1).join(", ")}` : `a number from 1 to ${choices.length}`}; an empty line leaves the question open.`,
      );
    }
  };

  /** Asks for a line. If there is a text to edit, it is shown, and an empty line keeps it unchanged. */
  readonly ask: Desk["ask"] = async (title, { initial = "" } = {}) => {
    const shown = initial === "" ? [] : [initial, "Write all of it in one line; an empty line goes back."];
    this.#terminal.say([title, ...shown].join("\n"));
    const line = await this.#lines.next(this.#isGone);
    return line === other || (line === "" && initial !== "") ? undefined : line;
  };

  readonly setDraft: Desk["setDraft"] = (text) => this.#terminal.say(`Not sent: ${visibleText(text)}`);

  readonly keys = usualKeys;

  readonly copy: Desk["copy"] = (text) => this.#terminal.say(visibleText(text));

  readonly setTheme: Desk["setTheme"] = () => this.say("Lines have no colours.");

  readonly readCommands: Desk["readCommands"] = async () => undefined;

  readonly quit: Desk["quit"] = () => {
    this.#stop.abort();
    this.#lines.close();
  };

  async #take(line: string): Promise<void> {
    const text = line.trim();
    if (text === "") return;
    try {
      const found = commandOf(text);
      // What a program pipes into the chat is a text for the model, whatever it begins with.
      const command = this.#terminal.canAsk ? shellCommandOf(text) : undefined;
      if (found !== undefined) await found.command.run(this, found.argument);
      else if (command !== undefined) this.say(await this.#shell.run(command));
      else if (!(await runExtension(this, text)))
        await this.#shell.send(line, (input) => this.conversation.send(input));
    } catch (error) {
      const fault = error instanceof RequestError ? faultOf(error) : Fault.from(error);
      this.#ends.set(`line ${this.#ends.size}`, exitKindOf(fault.code));
      this.say(fault.message, "bad");
    }
  }

  /** Waits until the agent has finished. If the agent asks questions, the next lines are the answers. */
  async #untilIdle(): Promise<void> {
    const { conversation } = this;
    const { signal } = this.#stop;
    for (;;) {
      await conversation.untilIdle(signal);
      if (signal.aborted || conversation.model.questions.length === 0) return;
      if (!(await this.#answerAll())) return;
    }
  }

  /** Asks all open questions. Returns whether each of them was answered. */
  async #answerAll(): Promise<boolean> {
    this.#isAsking = true;
    try {
      for (const question of this.conversation.model.questions) {
        if (!this.#isOpen(question)) continue;
        const { signal } = this.#stop;
        this.#question = question;
        const decision = await askQuestion(this, question, signal);
        // A question that was answered elsewhere needs no line of this person.
        if (!this.#isOpen(question)) {
          if (!signal.aborted) this.say(goneWords, "hold");
          continue;
        }
        if (decision === undefined) return false;
        try {
          await this.conversation.decide(question, decision);
          await this.conversation.untilAnswered(question, signal);
        } catch (error) {
          this.say(Fault.from(error).message, "bad");
          return false;
        }
      }
      return true;
    } finally {
      this.#question = undefined;
      this.#isAsking = false;
    }
  }

  #isOpen({ request: { approvalId } }: QuestionView): boolean {
    return this.conversation.model.questions.some(({ request }) => request.approvalId === approvalId);
  }

  /** Whether the question that is shown now no longer waits for an answer. */
  readonly #isGone = (): boolean => this.#question !== undefined && !this.#isOpen(this.#question);

  async #show(sessionId: string): Promise<void> {
    try {
      await this.conversation.show(sessionId);
    } catch (error) {
      this.say(Fault.from(error).message, "bad");
    }
  }

  #interrupted(): void {
    if (this.#shell.isRunning) return this.#shell.stop();
    if (this.#stop.signal.aborted) return this.#left.resolve();
    const { model, lostAt } = this.conversation;
    // A server that does not answer cannot stop the run.
    if (!model.isWorking || this.#isStopping || lostAt !== undefined) return this.quit();
    this.#isStopping = true;
    this.conversation.stop().then(
      (inputs) => inputs.forEach((input) => this.setDraft(inputText(input))),
      (error: unknown) => this.say(Fault.from(error).message, "bad"),
    );
  }

  #changed(): void {
    this.#printer.print(this.conversation.model.items);
  }
}

/** Prints each item once, when it can no longer change. Answers go to stdout, everything else to stderr. */
class ItemPrinter {
  readonly #terminal: Terminal;
  readonly #look = { theme: themeOf("none"), isOpen: false };
  #printed = -1;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  print(items: readonly PlacedItem[]): void {
    for (const placed of items) {
      if (placed.id <= this.#printed) continue;
      if (!isFinal(placed)) return;
      this.#printed = placed.id;
      this.#printOne(placed);
    }
  }

  finish(items: readonly PlacedItem[]): void {
    for (const placed of items) if (placed.id > this.#printed) this.#printOne(placed);
    this.#printed = items.at(-1)?.id ?? this.#printed;
  }

  #printOne(placed: PlacedItem): void {
    const { item } = placed;
    if (item.kind === "user" && item.from === "person") return;
    if (item.kind === "answer") {
      if (item.text !== "") this.#terminal.put(`${visibleText(item.text)}\n`);
      return;
    }
    const lines = blockOf(placed, this.#look)
      .parts()
      .map(textOfPart)
      .filter((line) => line !== "");
    if (lines.length > 0) this.#terminal.say(lines.join("\n"));
  }
}

function textOfPart(part: Part): string {
  // The text names the image.
  if (part.kind === "image") return "";
  return part.kind === "text" ? `${part.text === "" ? "" : (part.indent ?? "")}${part.text}` : part.text;
}

function isFinal({ item }: PlacedItem): boolean {
  if (item.kind === "answer") return !item.isLive;
  if (item.kind === "call") return item.status !== "open" && item.status !== "asks";
  return item.kind !== "hire" || item.isOver;
}
